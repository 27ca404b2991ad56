// SPDX-License-Identifier: Apache-2.0
// What a virtual machine boots from: a kernel of the distribution, of which the image and the few
// modules are taken and nothing is installed, and an initial file system of our own with these
// modules, caisson-guest-init and the agent.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::machine::microvm {

// Beside the store of images; empty when that has no place.
std::string DefaultKernelDirectory();

struct KernelOptions {
  std::string directory;  // gets vmlinuz, modules/ and version
  std::string package = "linux-image-cloud-amd64";
  std::function<void(std::string_view)> progress;  // one line for every step
  std::stop_token stop;
};
// Fetches the package by apt, as the host has it set up, unless the version that apt would take is
// there. Returns the version. Fails with images.tool_missing, images.tool_failed,
// machine.unavailable.
Result<std::string> FetchKernel(const KernelOptions& options);

// How the agent is reached, which decides what the guest has for it.
enum class AgentLink : std::uint8_t { kSerialPort, kVsock };

// What caisson-guest-init says on the console when the kernel's command line has kTrialOption; then
// it ends the machine.
inline constexpr const char* kTrialOption = "caisson.trial";
inline constexpr const char* kTrialWords = "caisson-guest-init: trial";

struct BootFiles {
  std::string directory;  // with vmlinuz and initrd
  std::string id;         // sha256 of both: what was saved goes on with the same ones only
};
// Makes `directory` from what FetchKernel has left in `kernel`; takes what is there when it is of
// the same. Fails with machine.unavailable.
Result<BootFiles> MakeBootFiles(const std::string& kernel, const std::string& agent,
                                const std::string& init, const std::string& directory,
                                AgentLink link = AgentLink::kSerialPort);

// The modules that depend on none that comes later, from their own words (`depends=`).
// For tests: `bytes` of an object file.
std::string DependenciesOf(std::string_view bytes);

}  // namespace caisson::machine::microvm
