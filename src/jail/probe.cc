// SPDX-License-Identifier: Apache-2.0
#include "jail/probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "jail/seal.h"
#include "jail/spawn.h"
#include "jail/syscalls.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/process.h"
#include "os/syscall_error.h"
#include "os/write_all.h"

namespace caisson::jail {
namespace {

constexpr int kSealFailed = 3;
constexpr int kForbiddenCallWorked = 4;

// One report a line: name, tab, 0 or 1, tab, reason.
std::string ToLines(const std::vector<WallReport>& reports) {
  std::string text;
  for (const WallReport& report : reports) {
    text += report.name + (report.stands ? "\t1\t" : "\t0\t") + report.reason + "\n";
  }
  return text;
}

void Send(int fd, std::string_view text) {
  (void)os::WriteAll(fd, text);  // nobody may be left to read it
}

// The innermost child: seals itself, says what stands, then does something forbidden.
int Inmate(const SealTicket& ticket) {
  auto hardened = Harden(ticket);
  if (!hardened) return kSealFailed;
  Send(kChannelFd, ToLines(*hardened));
  auto sealed = Seal(ticket, {.syscalls = WorkerSyscalls(kChannelFd)});
  if (!sealed) return kSealFailed;
  Send(kChannelFd, ToLines(*sealed));
  (void)::socket(AF_INET, SOCK_STREAM, 0);
  return kForbiddenCallWorked;
}

// The child between: has one thread, so that it may clone without executing a program.
void RunProbe(int channel) {
  SpawnOptions options{.entry = Inmate,
                       .channel = channel,
                       .limits = {.memory_bytes = 256u << 20, .cpus = 1, .pids = 16},
                       .allow_unjailed = AllowUnjailed()};
  auto jailed = Spawn(options);
  if (!jailed) {
    for (const WallInfo& info : AllWalls()) {
      Send(channel, ToLines({Missing(info.wall, jailed.error().message)}));
    }
    return;
  }
  Send(channel, ToLines(jailed->walls));
  const auto status = jailed->process.Wait(std::chrono::seconds(10));
  if (status && status->signal == SIGSYS) return;
  const std::string how = status ? os::ToText(*status) : "did not end";
  Send(channel, ToLines({Missing(Wall::kSeccomp,
                                 "a forbidden call should have killed the probe, "
                                 "but it " +
                                     how)}));
}

std::string ReceiveAll(int fd) {
  std::string text;
  pollfd event{fd, POLLIN, 0};
  char chunk[4096];
  while (::poll(&event, 1, 15'000) > 0) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(chunk, static_cast<std::size_t>(n));
  }
  return text;
}

// The last line about `info`, if any: a later one knows better.
std::optional<WallReport> Find(const std::string& text, const WallInfo& info) {
  const std::string key = "\n" + std::string(info.name) + "\t";
  const std::size_t at = text.rfind(key);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t flag = at + key.size();
  const std::size_t end = text.find('\n', flag);
  if (end == std::string::npos || end < flag + 2) return std::nullopt;
  std::string reason = text.substr(flag + 2, end - flag - 2);
  return text[flag] == '1' ? Standing(info.wall, std::move(reason))
                           : Missing(info.wall, std::move(reason));
}

}  // namespace

std::vector<WallReport> ProbeWalls() {
  std::string text = "\n";
  std::string failure = "the probe ended before it came to this wall";
  if (auto pair = os::MakeSocketPair(1u << 16)) {
    const pid_t child = ::fork();
    if (child == 0) {
      pair->first.Reset();
      RunProbe(pair->second.get());
      ::_exit(0);
    }
    pair->second.Reset();
    if (child > 0) {
      text += ReceiveAll(pair->first.get());
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    } else {
      failure = "fork: " + os::ErrnoText(errno);
    }
  } else {
    failure = pair.error().message;
  }
  std::vector<WallReport> reports;
  for (const WallInfo& info : AllWalls()) {
    auto report = Find(text, info);
    reports.push_back(report ? *std::move(report) : Missing(info.wall, failure));
  }
  return reports;
}

}  // namespace caisson::jail
