// SPDX-License-Identifier: Apache-2.0
// For tests: a World that is a helper of its own.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "machine/record.h"
#include "machine/test_helper.h"
#include "machine/test_world.h"
#include "os/run_program.h"

namespace caisson::machine {

class HelperWorld final : public World {
 public:
  // `why_not`: why there can be none; empty when there can.
  HelperWorld(HelperProcess::Options options, std::string why_not) : why_not_(std::move(why_not)) {
    if (why_not_.empty() && options.network && os::FindProgram("nft").empty()) {
      why_not_ = "there is no nft (Debian's nftables)";
    }
    if (!why_not_.empty()) return;
    if (options.network) {
      // The gateway's world is this test's own: what it mounts and links goes with it.
      EXPECT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
      EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      const auto up = os::RunProgram({.arguments = {"ip", "link", "set", "lo", "up"}});
      EXPECT_TRUE(up && up->succeeded());  // attackers look for what listens there
    }
    helper_ = std::make_unique<HelperProcess>(std::move(options));
    auto driver = helper_->Open();
    if (!driver) why_not_ = driver.error().message;
    EXPECT_TRUE(driver) << why_not_;
    if (driver) driver_ = *std::move(driver);
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
  std::unique_ptr<Driver> driver_;
};

}  // namespace caisson::machine
