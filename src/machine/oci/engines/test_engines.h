// SPDX-License-Identifier: Apache-2.0
// For tests: an engine that is the tests' own, with its own images and containers, for as long as
// this process lives. The helpers that it starts use it, too.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "machine/oci/machines/test_oci.h"
#include "os/fd.h"
#include "os/run_program.h"

namespace caisson::machine::oci {

// Podman with storage in a directory of its own.
class TestPodman {
 public:
  TestPodman() {
    char name[] = "/var/tmp/caisson-podman-XXXXXX";
    directory_ = ::mkdtemp(name);
    std::ofstream(directory_ + "/storage.conf")
        << "[storage]\ndriver = \"overlay\"\ngraphroot = \"" << directory_
        << "/graph\"\nrunroot = \"" << directory_ << "/run\"\n";
    std::ofstream(directory_ + "/containers.conf")
        << "[engine]\ntmp_dir = \"" << directory_ << "/tmp\"\nlock_type = \"file\"\n"
        << "events_logger = \"none\"\n";
    ::setenv("CONTAINERS_STORAGE_CONF", (directory_ + "/storage.conf").c_str(), 1);
    ::setenv("CONTAINERS_CONF", (directory_ + "/containers.conf").c_str(), 1);
  }
  TestPodman(const TestPodman&) = delete;
  TestPodman& operator=(const TestPodman&) = delete;
  ~TestPodman() {
    (void)os::RunProgram({.arguments = {"podman", "rm", "--all", "--force"}});
    ::umount2((directory_ + "/graph/overlay").c_str(), MNT_DETACH);
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

 private:
  std::string directory_;
};

// A daemon of Docker in namespaces of its own: no bridge, and no rules of a packet filter.
class TestDocker {
 public:
  TestDocker() {
    char name[] = "/var/tmp/caisson-docker-XXXXXX";
    directory_ = ::mkdtemp(name);
    ::setenv("DOCKER_HOST", ("unix://" + directory_ + "/docker.sock").c_str(), 1);
    Start();
  }
  TestDocker(const TestDocker&) = delete;
  TestDocker& operator=(const TestDocker&) = delete;
  ~TestDocker() {
    (void)os::RunProgram({.arguments = {"sh", "-c", "docker ps -aq | xargs -r docker rm -f"}});
    End(SIGTERM);
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

  pid_t pid() const { return pid_; }
  void Start() {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      Execute();
      ::_exit(127);
    }
    for (int i = 0; i < 300 && !Answers(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    const std::string spaces = "/proc/" + std::to_string(pid_) + "/ns/";
    if (!mounts_.valid()) mounts_.Reset(::open((spaces + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!network_.valid()) network_.Reset(::open((spaces + "net").c_str(), O_RDONLY | O_CLOEXEC));
  }
  void End(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    // Its containerd has ended with it. Where nobody reaps that, the next one takes it for alive.
    std::error_code error;
    std::filesystem::remove(directory_ + "/exec/containerd/containerd.pid", error);
  }
  static bool Answers() {
    const auto end = os::RunProgram({.arguments = {"docker", "version"}});
    return end && end->succeeded();
  }

 private:
  void Execute() const {
    if (mounts_.valid()) {  // it finds what an earlier one has left
      if (::setns(network_.get(), CLONE_NEWNET) != 0) return;
      if (::setns(mounts_.get(), CLONE_NEWNS) != 0) return;
    } else {
      if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return;
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    }
    const std::string log = directory_ + "/log";
    (void)!std::freopen(log.c_str(), "a", stdout);
    (void)!std::freopen(log.c_str(), "a", stderr);
    const std::string host = std::getenv("DOCKER_HOST");
    ::execlp("dockerd", "dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false",
             "--live-restore", "-H", host.c_str(), "--data-root", (directory_ + "/data").c_str(),
             "--exec-root", (directory_ + "/exec").c_str(), "--pidfile",
             (directory_ + "/pid").c_str(), nullptr);
  }

  std::string directory_;
  pid_t pid_ = -1;
  os::UniqueFd mounts_, network_;
};

inline TestDocker& Docker() {
  static TestDocker docker;
  return docker;
}

// Starts it. Why it cannot be; empty when it is there.
inline std::string WhyNoEngine(const std::string& name) {
  if (std::string why = WhyNoMachines(); !why.empty()) return why;
  for (const std::string& program :
       {name == "docker" ? std::string("dockerd") : std::string("conmon"), name}) {
    if (os::FindProgram(program).empty()) return "there is no " + program;
  }
  if (name == "docker") {
    (void)Docker();
  } else {
    static const TestPodman podman;
  }
  return WhyNoOci(name);
}

inline MakeWorld EngineWith(const std::string& name, bool network) {
  return [=]() -> std::unique_ptr<World> {
    return std::make_unique<HelperWorld>(OciHelper(name, network), WhyNoEngine(name));
  };
}

}  // namespace caisson::machine::oci
