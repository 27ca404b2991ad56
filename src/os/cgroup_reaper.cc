// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup_reaper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "os/cgroup.h"

namespace caisson::os {
namespace {

constexpr int kPasses = 500;  // of 10 ms: what was killed leaves its group a little later

// Made before the process: it may not allocate.
struct Plan {
  int alive = -1;  // to be read from; ends when the last process that may write to it has
  std::array<std::string, 3> parents;
  std::string prefix;
};

// As the kernel gives it; libc's readdir allocates.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
  char name[1];
};

// Whether groups of ours were found in `parent`, be they removed or not.
bool RemoveIn(const std::string& parent, const std::string& prefix) {
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  bool found = false;
  alignas(Entry) char buffer[8192];
  for (;;) {
    const long filled = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (filled <= 0) break;
    for (long at = 0; at < filled;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->size;
      if (std::strncmp(entry->name, prefix.c_str(), prefix.size()) != 0) continue;
      found = true;
      (void)::unlinkat(directory, entry->name, AT_REMOVEDIR);
    }
  }
  ::close(directory);
  return found;
}

// Async-signal-safe only.
[[noreturn]] void Reap(const Plan& plan) {
  ::setsid();  // signals for our group are not for this process
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "caisson-reaper");
  ::dup2(plan.alive, 0);
  // Nobody may wait for a stream or a lock that only this process still holds.
  ::syscall(SYS_close_range, 1, ~0u, 0);
  (void)!::chdir("/");
  char byte = 0;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    bool found = false;
    for (const std::string& parent : plan.parents) {
      if (!parent.empty()) found |= RemoveIn(parent, plan.prefix);
    }
    if (!found) break;
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

}  // namespace

CgroupReaper& CgroupReaper::operator=(CgroupReaper&& other) noexcept {
  process_ = std::move(other.process_);
  alive_ = std::move(other.alive_);
  return *this;
}

Result<CgroupReaper> CgroupReaper::Start() {
  Plan plan;
  bool any = false;
  const auto places = FindControllers();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].version == 0) continue;
    plan.parents[i] = places[i].parent;
    any = true;
  }
  CgroupReaper reaper;
  if (!any) return reaper;
  plan.prefix = Cgroup::NamePrefix();
  CAISSON_ASSIGN(FdPair pipe, MakePipe());
  plan.alive = pipe.first.get();
  CAISSON_ASSIGN(CloneResult clone, CloneWithNamespaces(0));
  if (clone.pid == 0) Reap(plan);
  reaper.alive_ = std::move(pipe.second);
  reaper.process_ = ChildProcess(clone.pid, std::move(clone.pidfd));
  return reaper;
}

}  // namespace caisson::os
