// SPDX-License-Identifier: Apache-2.0
// For tests and benches: the real agent program as pid 1 of a pid namespace with its own /proc,
// reached as a driver reaches it.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/client.h"
#include "os/process.h"

namespace caisson::agent {

class AgentUnderTest {
 public:
  // The `inherited` descriptors become 4, 5, … of the agent.
  explicit AgentUnderTest(std::vector<std::string> options = {},
                          const std::vector<int>& inherited = {}) {
    char pattern[] = "/tmp/caisson-agent-test-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    address_.sun_family = AF_UNIX;
    const std::string path = folder_ + "/agent";
    path.copy(address_.sun_path, sizeof address_.sun_path - 1);
    os::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* address = reinterpret_cast<const sockaddr*>(&address_);
    Require(::bind(listener.get(), address, sizeof address_) == 0, "bind");
    Require(::listen(listener.get(), 128) == 0, "listen");
    options.insert(options.begin(), CAISSON_BINARY_DIR "/bin/caisson-agent");
    if (std::ranges::find(options, "--self-port") == options.end()) {
      options.insert(options.end(), {"--self-port", "0"});
    }
    Start(std::move(listener), std::move(options), inherited);
  }
  ~AgentUnderTest() {
    agent_.Kill();
    agent_.Wait(std::chrono::seconds(10));
    std::filesystem::remove_all(folder_);
  }

  os::UniqueFd Connect() const {
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* address = reinterpret_cast<const sockaddr*>(&address_);
    Require(::connect(fd.get(), address, sizeof address_) == 0, "connect");
    return fd;
  }
  // A folder of the host that the machine sees, too.
  const std::string& folder() const { return folder_; }
  os::ChildProcess& process() { return agent_; }
  // Private memory of a process, in kB.
  static long PrivateMemory(int pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("RssAnon:")) continue;
    return line.size() > 8 ? std::stol(line.substr(8)) : -1;
  }

 private:
  static void Require(bool condition, const char* what) {
    if (condition) return;
    std::perror(what);
    std::abort();
  }

  void Start(os::UniqueFd listener, std::vector<std::string> words,
             const std::vector<int>& inherited) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const bool is_root = ::geteuid() == 0;
    auto clone =
        os::CloneWithNamespaces(CLONE_NEWPID | CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER));
    Require(clone.has_value(), "clone");
    if (clone->pid == 0) {
      Require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
      Require(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "mount /proc");
      // Out of the way first: they may have one another's numbers.
      std::vector<int> given{::fcntl(listener.get(), F_DUPFD_CLOEXEC, 100)};
      for (const int fd : inherited) given.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
      for (std::size_t i = 0; i < given.size(); ++i) ::dup2(given[i], 3 + static_cast<int>(i));
      ::execv(argv[0], argv.data());
      Require(false, "execute caisson-agent");
    }
    agent_ = os::ChildProcess(clone->pid, std::move(clone->pidfd));
  }

  std::string folder_;
  sockaddr_un address_{};
  os::ChildProcess agent_;
};

inline Command Shell(const std::string& script) {
  return {.argv = {"sh", "-c", script}, .env = {{"PATH", "/usr/bin:/bin"}}};
}

// What a command did, heard to its end.
struct Heard {
  std::string output;
  std::string errors;
  int started = 0;
  std::optional<ExecEvent> exit;  // or kFailedToStart, whose text is `why`
  std::string why;
  std::optional<Status> status;  // or this
  std::chrono::duration<double> took{0};
};

inline Heard Listen(Exec& exec) {
  Heard heard;
  const auto begin = std::chrono::steady_clock::now();
  while (!heard.exit && !heard.status) {
    auto event = exec.Next();
    if (!event) {
      heard.status = event.error();
    } else if (event->kind == ExecEvent::Kind::kStarted) {
      heard.started = event->pid;
    } else if (event->kind == ExecEvent::Kind::kStdout) {
      heard.output += event->data;
    } else if (event->kind == ExecEvent::Kind::kStderr) {
      heard.errors += event->data;
    } else if (event->kind != ExecEvent::Kind::kHeartbeat) {
      heard.exit = *event;
      heard.why = event->data;
    }
  }
  heard.took = std::chrono::steady_clock::now() - begin;
  return heard;
}

inline Heard RunIn(const AgentUnderTest& agent, const ExecRequest& request,
                   std::string_view input = {}) {
  auto exec = Exec::Start(agent.Connect(), request);
  if (!exec) return {.status = exec.error()};
  if (request.stdin_open) exec->FeedStdin(input);
  return Listen(*exec);
}
inline Heard RunIn(const AgentUnderTest& agent, const std::string& script) {
  return RunIn(agent, ExecRequest{.command = Shell(script)});
}

}  // namespace caisson::agent
