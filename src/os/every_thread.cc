// SPDX-License-Identifier: Apache-2.0
#include "os/every_thread.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

// What the handler needs; a signal handler has no other way to get at it.
struct Broadcast {
  int (*function)(void*) = nullptr;
  void* argument = nullptr;
  std::atomic<int> answered{0};
  std::atomic<int> error{0};
};
std::atomic<Broadcast*> g_broadcast{nullptr};

// Not a constant: libc computes it.
int Signal() { return SIGRTMAX - 1; }

void Handler(int) {
  const int saved = errno;
  if (Broadcast* broadcast = g_broadcast.load()) {
    if (const int error = broadcast->function(broadcast->argument)) broadcast->error = error;
    broadcast->answered.fetch_add(1);
  }
  errno = saved;
}

// ThreadSanitizer has a thread of its own that blocks all signals and cannot be reached; in its
// builds, and in no others, such a thread is passed over.
bool BelongsToSanitizer(const std::string& status) {
  if constexpr (!kThreadSanitizer) return false;
  const std::size_t at = status.find("\nSigBlk:\t");
  if (at == std::string::npos) return false;
  return (std::strtoull(status.c_str() + at + 9, nullptr, 16) >> (Signal() - 1) & 1) != 0;
}

// The ids of all threads as our own pid namespace has them: the last of "NSpid:". /proc may be the
// mount of an outer namespace, whose directory names are of no use to tgkill.
Result<std::vector<pid_t>> ThreadIds() {
  DIR* directory = ::opendir("/proc/self/task");
  if (directory == nullptr) return SyscallError("open /proc/self/task");
  std::vector<pid_t> ids;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    auto status = ReadSmallFile("/proc/self/task/" + std::string(entry->d_name) + "/status");
    if (!status || BelongsToSanitizer(*status)) continue;  // without status, it has ended
    const std::size_t at = status->find("\nNSpid:");
    if (at == std::string::npos) {
      ::closedir(directory);
      return SyscallError("find NSpid in /proc/self/task/*/status", ENOSYS);
    }
    std::istringstream line(status->substr(at + 7, status->find('\n', at + 1) - at - 7));
    pid_t id = 0;
    pid_t last = 0;
    while (line >> id) last = id;
    ids.push_back(last);
  }
  ::closedir(directory);
  return ids;
}

}  // namespace

Result<void> OnOtherThreads(int (*function)(void*), void* argument,
                            std::chrono::milliseconds timeout) {
  const int signal = Signal();
  // Leaked when a thread does not answer: its handler may still come to it.
  auto broadcast = std::make_unique<Broadcast>();
  broadcast->function = function;
  broadcast->argument = argument;
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = Handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, &previous) != 0) return SyscallError("sigaction");
  g_broadcast = broadcast.get();

  std::set<pid_t> asked = {static_cast<pid_t>(::syscall(SYS_gettid))};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int expected = 0;
  for (bool found_new = true; found_new;) {
    found_new = false;
    CAISSON_ASSIGN(const std::vector<pid_t> threads, ThreadIds());
    for (pid_t thread : threads) {
      if (!asked.insert(thread).second) continue;
      found_new = true;
      if (::syscall(SYS_tgkill, ::getpid(), thread, signal) == 0) ++expected;
    }
    while (broadcast->answered < expected && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (broadcast->answered < expected) {
      (void)broadcast.release();
      return SyscallError("reach every thread", ETIMEDOUT);
    }
  }
  g_broadcast = nullptr;
  ::sigaction(signal, &previous, nullptr);
  if (broadcast->error != 0) return SyscallError("act on every thread", broadcast->error);
  return {};
}

}  // namespace caisson::os
