// SPDX-License-Identifier: Apache-2.0
// A small process that removes our cgroups when we could not: it waits until this process has
// ended, however that happens (SIGKILL included), and then removes the empty groups that bear our
// Cgroup::NamePrefix(). A group can only be removed by somebody who outlives what is in it, and the
// kernel removes none by itself. What kills this process and its reaper at once (the end of a
// container, a reboot) leaves groups for Cgroup::Sweep, unless it removes them itself.
//
// One per process is enough. It costs a copy of this process that shares its pages, so make it
// early.
#pragma once

#include "base/status.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::os {

class CgroupReaper {
 public:
  // Starts the process; it ends with the object, without doing anything. None is started where no
  // cgroup can be made. Fails with os.syscall.
  static Result<CgroupReaper> Start();
  CgroupReaper() = default;
  CgroupReaper(CgroupReaper&&) noexcept = default;
  CgroupReaper& operator=(CgroupReaper&& other) noexcept;

  bool running() const { return process_.running(); }

 private:
  // In this order: the process is ended before the pipe's end tells it that we have.
  UniqueFd alive_;
  ChildProcess process_;
};

}  // namespace caisson::os
