// SPDX-License-Identifier: Apache-2.0
// The drivers of machines that this program has, by the names of --driver.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "machine/local.h"

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
};

using OpenDriver =
    std::function<Result<std::unique_ptr<machine::LocalDriver>>(machine::SharedParts)>;

std::map<std::string, OpenDriver> KnownDrivers(const DriverSettings& settings);

// What is installed with this program.
std::string BesideThisProgram(const std::string& name);
inline std::string AgentBesideThisProgram() { return BesideThisProgram("caisson-agent"); }

}  // namespace caisson::cli
