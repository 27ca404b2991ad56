// SPDX-License-Identifier: Apache-2.0
// What runs the processors of a virtual machine (QEMU, Firecracker), as the process beside it sees
// it (keeper.h). Calls block, each with a bound, and fail with machine.vm_failed (its own words are
// told, not believed) or machine.full. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "agent/channel_pump.h"
#include "agent/guest/loop.h"
#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

// A way to the agent: a stream of channels (agent/channels.h). With a new one the old one is over.
using TakeStream = std::function<void(os::UniqueFd stream, agent::StreamKind kind)>;

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual std::string name() const = 0;  // for messages: "QEMU"

  // By the plan: from what was saved, or by booting. Processors run when it returns. `take` is
  // called once or several times, now or from the loop.
  virtual Result<void> Start(agent::guest::Loop& loop, TakeStream take) = 0;
  // The agent does not answer on the stream that there is. False: there is no other, ask again.
  virtual bool MakeNewStream() = 0;
  // How long a greeting may take before MakeNewStream; 0: for ever.
  virtual std::chrono::milliseconds greeting_patience() const = 0;

  // Of the processors.
  virtual Result<void> Stop() = 0;
  virtual Result<void> GoOn() = 0;
  // Whether the agent has lost the stream by what was done since it was stopped.
  virtual bool LosesStream() const = 0;
  // Memory and state, into the files of kInsideOwn that are there; the processors stand still.
  virtual Result<void> Save() = 0;
  // The disk file, and what the guest sees of it.
  virtual Result<void> Grow(std::uint64_t bytes) = 0;

  // A child of this process has ended. True when the machine has ended with it.
  virtual bool HasEnded(pid_t pid, int status) = 0;
  virtual std::string last_words() const = 0;
  // Called every few seconds.
  virtual void Tidy() {}
};

}  // namespace caisson::machine::microvm
