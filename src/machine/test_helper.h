// SPDX-License-Identifier: Apache-2.0
// For tests: a helper with one driver in a process of its own, which can be killed and started
// again over the same state. Needs root, and the image that the test images.native_root has built
// (or the one that CAISSON_MACHINE_IMAGE names, in the store CAISSON_IMAGES_DIR).
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
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "images/store.h"
#include "machine/groups.h"
#include "machine/helper/client.h"
#include "machine/helper/server.h"
#include "machine/machines.h"
#include "machine/networks.h"

namespace caisson::machine {

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
  // Opens the driver in the helper's own process.
  using OpenDriver = std::function<Result<std::unique_ptr<LocalDriver>>(const std::string& state,
                                                                        SharedParts parts)>;
  struct Options {
    std::string driver;  // its name
    OpenDriver open;
    bool network = false;  // then this process must be in a network namespace of its own
    bool names = false;    // with a gate, which this program must be, too (egress/gate/program.h)
    std::string nft = "nft";
  };
  explicit HelperProcess(Options options) : options_(std::move(options)) {
    char name[] = "/tmp/caisson-machines-XXXXXX";
    directory_ = ::mkdtemp(name);
    Start();
  }
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

  Result<std::unique_ptr<helper::RemoteDriver>> Open() const {
    return helper::RemoteDriver::Open({.socket = socket(),
                                       .driver = options_.driver,
                                       .helper_patience = std::chrono::seconds(20)});
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
  // One that does not come up ends by itself: how.
  int AwaitEnd() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

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
    auto server = MakeServer();
    if (!server) return Complain(server.error());
    std::stop_source stop;
    std::thread waiter([&signals, &stop] {
      int signal = 0;
      ::sigwait(&signals, &signal);
      stop.request_stop();
    });
    const auto ran = (*server)->Run(stop.get_token());
    waiter.join();
    server->reset();
    return ran ? 0 : Complain(ran.error());
  }
  Result<std::unique_ptr<helper::Server>> MakeServer() const {
    SharedParts parts{.networks = NoNetworks(), .ids = std::make_shared<IdRanges>()};
    if (options_.network) {
      egress::GatewayOptions gateway{.directory = directory_ + "/network", .nft = options_.nft};
      if (options_.names) gateway.start_gate = egress::GateProcess::Start;
      CAISSON_ASSIGN(parts.networks, GatewayNetworks(gateway));
    }
    CAISSON_ASSIGN(auto driver, options_.open(state(), parts));
    MachinesByDriver machines;
    CAISSON_ASSIGN(machines[options_.driver], Machines::Open(std::move(driver), parts.networks));
    CAISSON_TRY(RemoveStrays(*parts.networks, machines));
    return helper::Server::Listen(std::move(machines), socket(), ::geteuid());
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

}  // namespace caisson::machine
