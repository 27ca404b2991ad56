// SPDX-License-Identifier: Apache-2.0
// For tests: a helper in a process of its own, which can be killed and started again over the same
// state. Needs root, and the image that the test images.native_root has built (or the one that
// CAISSON_MACHINE_IMAGE names, in the store CAISSON_IMAGES_DIR).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "images/store.h"
#include "machine/jail/driver.h"
#include "machine/jail/helper.h"
#include "machine/jail/networks.h"

namespace caisson::machine::jail {

inline std::string ImagesForTests() {
  const char* store = std::getenv("CAISSON_IMAGES_DIR");
  return store != nullptr ? store : CAISSON_TEST_IMAGES_DIR;
}

// Its id; empty where there is none.
inline std::string ImageForTests() {
  const char* name = std::getenv("CAISSON_MACHINE_IMAGE");
  const auto store = images::Store::Open(ImagesForTests());
  if (!store) return "";
  const auto image = store->Find(name != nullptr ? name : "python-science");
  return image ? image->id : "";
}

// Why no machine can be made here; empty when it can.
inline std::string WhyNoMachines() {
  if (::geteuid() != 0) return "machines are made by root";
  if (ImageForTests().empty()) return "there is no image; the test images.native_root says why";
  if (const auto groups = Groups::Plan("probe"); !groups) return groups.error().message;
  return "";
}

class HelperProcess {
 public:
  struct Options {
    std::size_t prepared = 2;
    std::size_t threads = 2;
    bool network = false;  // then this process must be in a network namespace of its own
  };
  explicit HelperProcess(Options options) : options_(options) {
    char name[] = "/tmp/caisson-machines-XXXXXX";
    directory_ = ::mkdtemp(name);
    Start();
  }
  HelperProcess() : HelperProcess(Options{}) {}
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  ~HelperProcess() {
    if (pid_ <= 0) Start();
    if (auto driver = Open()) {
      if (const auto machines = (*driver)->List()) {
        for (const Machine& machine : *machines) {
          EXPECT_TRUE((*driver)->Destroy(machine.id)) << machine.id;
        }
      }
    }
    Stop();
    ::umount2((directory_ + "/network/gateway").c_str(), MNT_DETACH);  // it stays by design
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
    EXPECT_FALSE(error) << directory_ << ": " << error.message();
  }

  const std::string& directory() const { return directory_; }
  std::string socket() const { return directory_ + "/socket"; }
  std::string state() const { return directory_ + "/state"; }
  pid_t pid() const { return pid_; }

  Result<std::unique_ptr<JailDriver>> Open() const {
    return JailDriver::Open({.socket = socket(), .helper_patience = std::chrono::seconds(20)});
  }

  void Start() {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(Run());
    }
  }
  void Stop() { End(SIGTERM); }
  void Kill() { End(SIGKILL); }

 private:
  void End(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (signal == SIGTERM) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    pid_ = -1;
  }

  int Run() const {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);  // threads inherit it
    std::unique_ptr<Networks> networks = NoNetworks();
    if (options_.network) {
      auto gateway = GatewayNetworks({.directory = directory_ + "/network"});
      if (!gateway) return Complain(gateway.error());
      networks = *std::move(gateway);
    }
    auto machines = Machines::Open(
        {.workshop = {.state = state(), .images = ImagesForTests(), .agent = CAISSON_TEST_AGENT},
         .prepared = options_.prepared,
         .threads = options_.threads},
        std::move(networks));
    if (!machines) return Complain(machines.error());
    auto helper = Helper::Listen(*std::move(machines), socket(), ::geteuid());
    if (!helper) return Complain(helper.error());
    std::stop_source stop;
    std::thread waiter([&signals, &stop] {
      int signal = 0;
      ::sigwait(&signals, &signal);
      stop.request_stop();
    });
    const auto ran = (*helper)->Run(stop.get_token());
    waiter.join();
    helper->reset();
    return ran ? 0 : Complain(ran.error());
  }
  static int Complain(const Status& status) {
    std::fprintf(stderr, "helper: %s: %s\n", std::string(status.code.name).c_str(),
                 status.message.c_str());
    return 1;
  }

  Options options_;
  std::string directory_;
  pid_t pid_ = -1;
};

}  // namespace caisson::machine::jail
