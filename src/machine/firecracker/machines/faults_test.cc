// SPDX-License-Identifier: Apache-2.0
// What goes wrong with Firecracker, as far as a double can make it: each has an error of its own,
// nothing is left behind, and nothing weaker takes its place.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "errors/machine.h"
#include "machine/firecracker/api.h"
#include "machine/firecracker/machines/test_firecracker.h"

namespace caisson::machine::firecracker {
namespace {

namespace fs = std::filesystem;

class FirecrackerFaults : public FirecrackerMachines {
 protected:
  // Why the driver is refused.
  static std::string Refused(const std::function<void(FirecrackerOptions&)>& spoil) {
    char name[] = "/tmp/caisson-fire-state-XXXXXX";
    const std::string state = ::mkdtemp(name);
    FirecrackerOptions options = furniture().Options(state);
    options.machines.cache.clear();
    spoil(options);
    const auto driver =
        OpenFirecracker(options, {.networks = NoNetworks(), .ids = std::make_shared<IdRanges>()});
    EXPECT_FALSE(driver);
    fs::remove_all(state);
    if (driver) return "";
    EXPECT_EQ(driver.error().code, errors::kMachineUnavailable);
    return driver.error().message;
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(DirectoriesLeft(), 0U);
    EXPECT_EQ(TracesOf(*helper_), std::vector<std::string>{});
  }
};

TEST_F(FirecrackerFaults, WithoutKvmJailerOrATrialBootTheDriverIsRefused) {
  EXPECT_NE(
      Refused([](FirecrackerOptions& o) { o.kvm = "/no/kvm"; }).find("needs KVM, and /no/kvm"),
      std::string::npos);
  EXPECT_NE(Refused([](FirecrackerOptions& o) {
              o.firecracker = "no-firecracker";
            }).find("no program no-firecracker"),
            std::string::npos);
  EXPECT_NE(
      Refused([](FirecrackerOptions& o) { o.jailer = "no-jailer"; }).find("no program no-jailer"),
      std::string::npos);
  EXPECT_NE(Refused([](FirecrackerOptions& o) { o.machines.vmm += "-none"; }).find("is missing"),
            std::string::npos);
  doubles().Wish("trial", "the processor does not come up");
  const std::string why = Refused([](FirecrackerOptions& o) { o.machines.allow_emulation = true; });
  EXPECT_NE(why.find("a trial boot with KVM did not come up"), std::string::npos) << why;
  EXPECT_NE(why.find("the processor does not come up"), std::string::npos) << why;
}

TEST_F(FirecrackerFaults, AKernelWithoutVsockIsToldWithWhatToDo) {
  const std::string why = Refused([](FirecrackerOptions& o) {
    fs::copy(o.machines.kernel, o.machines.state + "/kernel", fs::copy_options::recursive);
    o.machines.kernel = o.machines.state + "/kernel";
    std::ofstream(o.machines.kernel + "/modules/order") << "";
  });
  EXPECT_NE(why.find("caisson images kernel"), std::string::npos) << why;
}

TEST_F(FirecrackerFaults, WhatFirecrackerOrTheJailerRefusesIsToldInTheirWords) {
  Start();
  doubles().Wish("jailer_fails", "Failed to create /dev/kvm via mknod inside the jail");
  auto made = driver_->Create(Spec("one"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineVmFailed);
  EXPECT_NE(made.error().message.find("the jailer gave up: Jailer error: Failed to create"),
            std::string::npos)
      << made.error().message;
  ExpectNothingLeft();
  doubles().Forget();
  doubles().Wish("refuse", "/snapshot/load\n/boot-source");
  made = driver_->Create(Spec("one"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineVmFailed);
  EXPECT_NE(made.error().message.find("as it was wished"), std::string::npos)
      << made.error().message;
  ExpectNothingLeft();
}

TEST_F(FirecrackerFaults, AProcessThatDiesWhileItIsAskedIsTold) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("first"))) << "so that there is a template";
  ASSERT_TRUE(driver_->Destroy("first"));
  doubles().Wish("end", "/snapshot/load");
  const auto made = driver_->Create(Spec("one"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineVmFailed) << made.error().message;
  EXPECT_NE(made.error().message.find("does not answer PUT /snapshot/load"), std::string::npos)
      << made.error().message;
  ExpectNothingLeft();
}

TEST_F(FirecrackerFaults, AFullDiskIsToldAndTheMachineGoesOn) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one", {"remember", "kept"}), "");
  doubles().Wish("full", "");
  EXPECT_EQ(CodeOf(driver_->Pause("one", Level::kDisk)), "machine.full");
  EXPECT_EQ(StateOf("one"), State::kPausedInMemory);
  EXPECT_EQ(CodeOf(driver_->TakeSnapshot("one", "kept")), "machine.full");
  doubles().Unwish("full");
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("one", {"recall"}), "kept");
  EXPECT_EQ(CodeOf(driver_->Pause("one", Level::kDisk)), "fine");
}

TEST_F(FirecrackerFaults, ASnapshotWhoseStateIsDamagedIsNotRestored) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  ASSERT_TRUE(driver_->TakeSnapshot("one", "kept"));
  ASSERT_TRUE(driver_->Destroy("one"));
  const std::string state = helper_->state() + "/snapshots/kept/state";
  fs::permissions(state, fs::perms(0644));
  std::ofstream(state, std::ios::in | std::ios::out) << "damage";
  const auto restored = driver_->Restore("kept", Spec("two"));
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, errors::kMachineDamaged) << restored.error().message;
  EXPECT_TRUE(driver_->RemoveSnapshot("kept"));
  ExpectNothingLeft();
}

TEST_F(FirecrackerFaults, AMachineWhoseFirecrackerIsKilledBootsFromItsDisk) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one", {"remember", "lost"}), "");
  EXPECT_EQ(Say("one", {"write", "kept"}), "");
  for (const auto& process : fs::directory_iterator("/proc")) {
    if (ContentOf(process.path() / "comm") != "firecracker\n") continue;
    for (const auto& machine : fs::directory_iterator(helper_->state() + "/machines")) {
      if (ContentOf(process.path() / "cgroup").find(machine.path().filename()) !=
          std::string::npos) {
        ::kill(std::stoi(process.path().filename()), SIGKILL);
      }
    }
  }
  for (int i = 0; i < 200 && StateOf("one") != State::kStopped; ++i) ::usleep(10'000);
  EXPECT_EQ(StateOf("one"), State::kStopped);
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("one", {"read"}), "kept");
  EXPECT_EQ(Say("one", {"recall"}), "");
  EXPECT_EQ(Say("one", {"identity"}), "one");
}

TEST_F(FirecrackerFaults, AStreamThatTheGuestHasLostIsNotTheEnd) {
  Start();
  doubles().Wish("dead_streams", "1");
  const auto made = driver_->Create(Spec("one"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(Say("one", {"identity"}), "one");
}

// A server in place of Firecracker that takes what it is asked and says nothing.
TEST(FirecrackerApi, ThatStallsIsGivenUpInTime) {
  char name[] = "/tmp/caisson-fire-api-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const std::string path = directory + "/api.sock";
  {
    const os::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_FALSE(IsListening(path));
    ASSERT_EQ(::listen(listener.get(), 4), 0);
    EXPECT_TRUE(IsListening(path));
    Api api = Api::Open(path).value();
    const auto begin = std::chrono::steady_clock::now();
    const auto done = api.Do(PauseCall(), std::chrono::milliseconds(100));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, errors::kMachineVmFailed);
    EXPECT_NE(done.error().message.find("does not answer PATCH /vm within 0.1 s"),
              std::string::npos)
        << done.error().message;
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace caisson::machine::firecracker
