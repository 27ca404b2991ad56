// SPDX-License-Identifier: Apache-2.0
// The steps of which walls around a monitor are made (walls.h, firecracker/walls.h). Of a process
// that has one thread and is root: what fails is told to the helper (kReportFd), and the process
// ends.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

[[noreturn]] void GiveUp(const std::string& step, int error);
// What is not `done` failed with errno.
void Must(bool done, const std::string& step);
void Must(const Result<void>& done, const std::string& step);

// Fills a directory that becomes somebody's root.
class RootMaker {
 public:
  explicit RootMaker(std::string root) : root_(std::move(root)) {}

  // Shows a file or directory of the host, with all that is mounted below it left out.
  void Show(const std::string& from, const std::string& to, bool writable);
  // As on the host, where a directory or a link to one; nothing where there is none.
  void ShowSystem(const std::string& path);
  // A device of the host's, for one user, whoever may open it on the host.
  void Device(const std::string& path, uid_t user);
  void MakeParents(const std::string& path);
  void Tmpfs(const std::string& path, const std::string& options);

 private:
  std::string root_;
};

// Whoever has taken a monitor over shall not fill the host's disk. Lowered only, which needs no
// right.
void LimitFiles(std::uint64_t bytes);
// Into the groups of kFirstTaskFd and after.
void JoinGroups(int count);
// The present directory, a mount, becomes the root, read-only; nothing else is seen.
void EnterRoot();
// An id that nothing else has, no capabilities and no way to any. `readable`: by others of this id,
// as by what watches a monitor and reads its memory to save it.
void LoseRights(uid_t id, bool readable);
void LoadFilter(std::vector<sock_filter>& filter);

// Returns in the first process of a new namespace of processes, once `put_up` has; the calling
// process tells the helper that the walls stand, and ends.
void ForkBehindWalls(const std::function<void()>& put_up);

}  // namespace caisson::machine::microvm
