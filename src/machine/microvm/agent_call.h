// SPDX-License-Identifier: Apache-2.0
// One operation of a machine's agent that ends with kOk, kExit or kFailed, over a connection of its
// own, as caisson-vmm asks for them (agent/guest/computer.h). What comes is a guest's, and bounded.
// For one loop; whoever destroys it hears nothing more of it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "agent/frames.h"
#include "agent/guest/loop.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

class AgentCall {
 public:
  // `failure` says in a few words why it was not done. Called once, never from the constructor; may
  // destroy this object.
  using Done = std::function<void(bool answered, const std::string& failure)>;

  // `socket` is not blocking.
  AgentCall(agent::guest::Loop& loop, os::UniqueFd socket, agent::FrameType type,
            const std::string& payload, std::chrono::milliseconds patience, Done done);

 private:
  void Read();
  bool Take(const agent::Frame& frame);
  void Finish(bool answered, const std::string& failure);

  agent::guest::Loop& loop_;
  std::unique_ptr<agent::guest::EventSource> source_;
  agent::FrameReader reader_;
  agent::guest::Timer timer_;
  Done done_;
};

}  // namespace caisson::machine::microvm
