// SPDX-License-Identifier: Apache-2.0
// The jail as a Driver. What it leaves on the host is looked at in jail/traces_test.cc.
#include "machine/test_conformance.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <filesystem>
#include <memory>
#include <string>

#include "machine/jail/test_jail.h"
#include "machine/record.h"
#include "os/run_program.h"

namespace caisson::machine {
namespace {

class JailWorld final : public World {
 public:
  explicit JailWorld(bool network) : why_not_(WhyNoMachines()) {
    if (network && os::FindProgram("nft").empty()) why_not_ = "there is no nft (Debian's nftables)";
    if (!why_not_.empty()) return;
    if (network) {
      // The gateway's world is this test's own: what it mounts and links goes with it.
      EXPECT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
      EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    }
    helper_ = std::make_unique<HelperProcess>(jail::JailHelper(network));
    auto driver = helper_->Open();
    if (driver) driver_ = *std::move(driver);
    if (!driver) why_not_ = driver.error().message;
    EXPECT_TRUE(driver) << why_not_;
  }
  std::string WhyNot() override { return why_not_; }
  Driver& driver() override { return *driver_; }
  std::string image() override { return ImageForTests(); }
  void Restart() override {
    helper_->Kill();
    helper_->Start();
  }
  void KillAgent(const std::string& id) override {
    for (const auto& entry : std::filesystem::directory_iterator(helper_->state() + "/machines")) {
      const auto record = ReadRecord(entry.path(), entry.path().filename());
      if (record && record->spec.id == id) ::kill(record->agent, SIGKILL);
    }
  }

 private:
  std::string why_not_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

MakeWorld JailWith(bool network) {
  return [network]() -> std::unique_ptr<World> { return std::make_unique<JailWorld>(network); };
}

INSTANTIATE_TEST_SUITE_P(Jail, DriverConformance, testing::Values(JailWith(false)),
                         [](const auto&) { return "without_network"; });
INSTANTIATE_TEST_SUITE_P(Network, DriverConformance, testing::Values(JailWith(true)),
                         [](const auto&) { return "with_network"; });

}  // namespace
}  // namespace caisson::machine
