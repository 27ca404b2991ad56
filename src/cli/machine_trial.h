// SPDX-License-Identifier: Apache-2.0
// Whether machines can be made on this host, by doing it: one of each driver, in a process of its
// own that has so much time, in a directory of its own that is removed afterwards. For doctor.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/console.h"
#include "json/value.h"
#include "machine/hostile/trial.h"

namespace caisson::cli {

struct DriverReport {
  std::string name;  // "jail", "oci-runsc", "oci-runc", "oci-podman", "oci-docker", "microvm", …
  bool works = false;
  std::string reason;  // why not
  std::string isolation_class;
  std::string isolation;
  bool emulated = false;
  std::chrono::milliseconds made{0};  // until a first command had ended in it
  bool attacked = false;              // then `verdicts` has every attack, unless `reason` says why
  std::vector<machine::hostile::Verdict> verdicts;
};

struct MachineTrialOptions {
  std::string images;  // the store's directory
  std::string image;   // name or id; empty: one that is there
  std::string agent;
  std::string kernel;            // of virtual machines
  bool allow_emulation = false;  // of their processors
  bool attack = false;
};

// Takes some seconds (half a minute with virtual machines that are emulated), with attacks minutes;
// says on the console which is at work.
std::vector<DriverReport> TryMachines(const MachineTrialOptions& options, Console& console);

// Whether no attack of a driver that works broke a promise.
bool Contained(const std::vector<DriverReport>& reports);

json::Value ToJson(const std::vector<DriverReport>& reports);
std::string ToTable(const std::vector<DriverReport>& reports);

}  // namespace caisson::cli
