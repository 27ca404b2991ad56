// SPDX-License-Identifier: Apache-2.0
// For tests of this folder: sandboxes of two tenants over a driver without machines.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/fake_driver.h"
#include "control/sandboxes.h"
#include "store/sqlite/store.h"

namespace caisson::control {

class SandboxesTest : public ::testing::Test {
 protected:
  SandboxesTest() {
    std::string pattern = ::testing::TempDir() + "caisson-control-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    store_ = store::sqlite::Open(directory_ + "/store.db").value();
    for (const char* tenant : {"alice", "bob"}) {
      EXPECT_TRUE(store_->Write([&](store::Rows& rows) {
        return rows.PutTenant({.id = tenant, .quota = {.bandwidth_bytes = 1000}});
      }));
    }
    options_.catalogue = [] {
      return std::vector<RootImage>{{.name = "devbox:1", .description = {}, .image = "abc"}};
    };
    options_.host_now = [] { return HostNow{1 << 20, 1 << 20}; };
    options_.now = [this] { return now_.load(); };
    options_.steady = [this] { return steady_.load(); };
    options_.answers = [this](machine::Driver&, const std::string& id) {
      return driver_.Has(id) && driver_.StateOf(id) == machine::State::kRunning && answers_;
    };
    Restart();
  }
  ~SandboxesTest() override {
    sandboxes_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Restart() { Restart({&driver_}); }
  void Restart(const std::vector<machine::Driver*>& drivers) {
    sandboxes_ = std::make_unique<Sandboxes>(options_, *store_, Drivers(drivers));
  }
  Sandbox Make(const CreateRequest& request = {.shape = "s-1vcpu-256mb"}) {
    auto made = sandboxes_->Create(alice_, request);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made->sandbox;
  }
  SandboxState StateOf(const std::string& id) { return sandboxes_->Get(alice_, id)->state; }
  // What was deleted goes without its caller.
  bool AwaitDestroyed(const std::string& id) {
    for (int i = 0; i < 1000 && StateOf(id) != SandboxState::kDestroyed; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return StateOf(id) == SandboxState::kDestroyed;
  }
  void Later(Milliseconds by) {
    now_ += by;
    steady_ += by;
  }
  void WallClockJumps(Milliseconds by) { now_ += by; }
  template <typename T>
  static std::string_view CodeOf(const Result<T>& result) {
    return result ? "none" : result.error().code.name;
  }
  void TendFor(int rounds) {
    for (int i = 0; i < rounds; ++i) sandboxes_->Tend();
  }

  std::string directory_;
  std::atomic<Milliseconds> now_ = 1'700'000'000'000;
  std::atomic<Milliseconds> steady_ = 1000;
  std::unique_ptr<store::Store> store_;
  FakeDriver driver_;
  SandboxesOptions options_;
  std::unique_ptr<Sandboxes> sandboxes_;
  std::atomic<bool> answers_ = true;
  Caller alice_{.tenant = "alice", .actor = "key-1"};
  Caller bob_{.tenant = "bob", .actor = "key-2"};
};

}  // namespace caisson::control
