// SPDX-License-Identifier: Apache-2.0
#include "os/every_thread.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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

void Handler(int) {
  const int saved = errno;
  if (Broadcast* broadcast = g_broadcast.load()) {
    if (const int error = broadcast->function(broadcast->argument)) broadcast->error = error;
    broadcast->answered.fetch_add(1);
  }
  errno = saved;
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
    if (!status) continue;  // it has ended
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

Result<void> OnEveryThread(int (*function)(void*), void* argument,
                           std::chrono::milliseconds timeout) {
  const int signal = SIGRTMAX - 1;
  Broadcast broadcast;
  broadcast.function = function;
  broadcast.argument = argument;
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = Handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, &previous) != 0) return SyscallError("sigaction");
  g_broadcast = &broadcast;

  CAISSON_ASSIGN(const std::vector<pid_t> threads, ThreadIds());
  const pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
  int asked = 0;
  for (pid_t thread : threads) {
    if (thread != self && ::syscall(SYS_tgkill, ::getpid(), thread, signal) == 0) ++asked;
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (broadcast.answered < asked && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  g_broadcast = nullptr;
  if (broadcast.answered < asked) return SyscallError("reach every thread", ETIMEDOUT);
  ::sigaction(signal, &previous, nullptr);
  if (broadcast.error != 0) return SyscallError("act on every thread", broadcast.error);
  if (const int error = function(argument)) return SyscallError("act on every thread", error);
  return {};
}

}  // namespace caisson::os
