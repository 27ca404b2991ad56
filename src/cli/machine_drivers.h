// SPDX-License-Identifier: Apache-2.0
// The drivers of machines that this program has, by the names of --driver.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/local.h"
#include "machine/microvm/yard.h"

namespace caisson::cli {

struct DriverSettings {
  std::string state;  // directory; the jail's own, and above those of the others
  std::string images;
  std::string agent;
  std::size_t prepared = 8;
  std::size_t builders = 8;
  std::string oci_runtime = "auto";
  std::function<void(const Status&)> not_prepared;  // machine/jail/driver.h
  std::string kernel;                               // of virtual machines
  bool allow_emulation = false;                     // of their processor
  std::vector<machine::microvm::PreparedShape> prepared_vms;
  std::size_t waiting_vms = 2;  // of each kind that was asked for lately
  std::size_t max_vm_templates = 16;
  std::uint64_t max_vm_template_bytes = 8ull << 30;
  std::chrono::milliseconds vm_template_patience{20'000};
};

using OpenDriver =
    std::function<Result<std::unique_ptr<machine::LocalDriver>>(machine::SharedParts)>;

std::map<std::string, OpenDriver> KnownDrivers(const DriverSettings& settings);

// What stands in the directory of this program.
std::string BesideThisProgram(const std::string& name);
// What nobody starts by himself is there in a build tree, and in ../lib/caisson where it is
// installed.
std::string InstalledFile(const std::string& name);
inline std::string AgentBesideThisProgram() { return InstalledFile("caisson-agent"); }

}  // namespace caisson::cli
