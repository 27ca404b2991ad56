// SPDX-License-Identifier: Apache-2.0
// What Firecracker is asked, call by call, in order. Paths are those inside its jail, which are the
// same for every machine: so that what was saved in one goes on in another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::firecracker {

inline constexpr const char* kApiSocket = "/run/api.sock";
inline constexpr const char* kAgentSocket = "/run/agent.vsock";
// On which the agent listens. Only root may listen there in the guest.
inline constexpr std::uint32_t kAgentPort = 1000;

struct Call {
  std::string method;
  std::string path;
  json::Value body;
};

// On a fresh process: a machine that boots, and one that goes on from what was saved.
std::vector<Call> BootCalls(const microvm::Plan& plan);
std::vector<Call> LoadCalls(const microvm::Plan& plan);
Call PauseCall();
Call ResumeCall();
Call SaveCall();       // of a paused machine
Call GrownDiskCall();  // the disk's file has another size

// What the kernel is told.
std::string KernelCommand();

}  // namespace caisson::machine::firecracker
