// SPDX-License-Identifier: Apache-2.0
// What happens to sandboxes whose guests do what they can against it.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "control/plan.h"
#include "control/test_sandboxes.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

using namespace std::chrono_literals;

class TendingTest : public SandboxesTest {
 protected:
  void Sends(const std::string& id, std::uint64_t bytes) {
    driver_.machines.at(id).stats.network_sent_bytes = bytes;
  }
  std::int64_t SentBy(const std::string& id) { return sandboxes_->Get(alice_, id)->bytes_out; }
  // As when a guest holds its own agent up: it runs, and nobody can use it.
  Result<void> RunWithoutAnswer(const std::string& id) {
    driver_.machines.at(id).machine.state = machine::State::kRunning;
    return Fail(errors::kMachineAgentLost, "the agent did not answer");
  }
};

TEST_F(TendingTest, WhatDoesNotAnswerAfterAResumeDoesNotRunOn) {
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    return operation == "resume" ? RunWithoutAnswer(id) : Result<void>();
  };
  Sends(sandbox.id, 400);
  EXPECT_EQ(CodeOf(sandboxes_->Resume(alice_, sandbox.id)), "control.machine");
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kError);
  EXPECT_EQ(driver_.StateOf(sandbox.id), machine::State::kPausedInMemory);
  EXPECT_EQ(SentBy(sandbox.id), 400);
  driver_.before = nullptr;
  EXPECT_TRUE(sandboxes_->Resume(alice_, sandbox.id));
}

TEST_F(TendingTest, WhatCannotBeFrozenIsStopped) {
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  int pauses = 0;
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    if (operation == "resume") return RunWithoutAnswer(id);
    // The first is to memory, the second to disk.
    if (operation == "pause" && ++pauses == 1) {
      return Fail(errors::kMachineUnavailable, "it cannot be frozen");
    }
    return {};
  };
  EXPECT_FALSE(sandboxes_->Resume(alice_, sandbox.id));
  EXPECT_NE(driver_.StateOf(sandbox.id), machine::State::kRunning);
  EXPECT_EQ(pauses, 2);
}

TEST_F(TendingTest, WhatRunsInAnErrorIsCountedAndStoppedAsSoonAsItCanBe) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}});
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    if (operation == "resume") return RunWithoutAnswer(id);
    if (operation == "pause") return Fail(errors::kMachineUnavailable, "not now");
    return {};
  };
  EXPECT_FALSE(sandboxes_->Resume(alice_, sandbox.id));
  EXPECT_EQ(driver_.StateOf(sandbox.id), machine::State::kRunning);
  Sends(sandbox.id, 300);
  TendFor(3);
  EXPECT_EQ(SentBy(sandbox.id), 300);
  Sends(sandbox.id, 1000);
  TendFor(3);
  EXPECT_TRUE(sandboxes_->Get(alice_, sandbox.id)->is_capped);
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.network, egress::Policy::DenyAll());
  driver_.before = nullptr;
  TendFor(3);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kError);
  EXPECT_EQ(driver_.StateOf(sandbox.id), machine::State::kPausedInMemory);
}

TEST_F(TendingTest, WhatRunsThoughItsRowSaysPausedIsStopped) {
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  driver_.machines.at(sandbox.id).machine.state = machine::State::kRunning;
  TendFor(3);
  EXPECT_EQ(driver_.StateOf(sandbox.id), machine::State::kPausedInMemory);
  driver_.machines.at(sandbox.id).machine.state = machine::State::kRunning;
  Restart();
  ASSERT_TRUE(sandboxes_->Adopt());
  EXPECT_EQ(driver_.StateOf(sandbox.id), machine::State::kPausedInMemory);
}

TEST_F(TendingTest, WhatASandboxSentLastIsCountedWhenItIsPaused) {
  const Sandbox sandbox = Make();
  Sends(sandbox.id, 123);
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  EXPECT_EQ(SentBy(sandbox.id), 123);
}

TEST_F(TendingTest, OneStuckGuestDelaysNobody) {
  options_.tend_patience = 50ms;
  Restart();
  const Sandbox stuck = Make({.shape = "s-1vcpu-256mb", .auto_pause_seconds = 60});
  const Sandbox idle = Make({.shape = "s-1vcpu-256mb", .auto_pause_seconds = 60});
  const Sandbox wish = Make({.shape = "s-1vcpu-256mb", .delete_after_seconds = 60});
  const Sandbox busy = Make();
  TendFor(1);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    if (operation == "pause" && id == stuck.id) released.wait();
    return {};
  };
  Later(60'000);
  Sends(busy.id, 10);
  const auto begin = std::chrono::steady_clock::now();
  const auto all_done = [&] {
    return StateOf(idle.id) == SandboxState::kPaused &&
           StateOf(wish.id) == SandboxState::kDestroyed && SentBy(busy.id) == 10;
  };
  for (int i = 0; i < 100 && !all_done(); ++i) TendFor(3);
  // Nothing of it waited for the stuck one, which nobody releases before this.
  EXPECT_TRUE(all_done());
  EXPECT_EQ(StateOf(stuck.id), SandboxState::kPausing);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  release.set_value();
  for (int i = 0; i < 1000 && StateOf(stuck.id) != SandboxState::kPaused; ++i) TendFor(1);
  EXPECT_EQ(StateOf(stuck.id), SandboxState::kPaused);
}

TEST_F(TendingTest, ASandboxThatSomebodyChangesIsLeftToTheNextRound) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .delete_after_seconds = 60});
  std::promise<void> begun;
  std::promise<void> release;
  driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation != "network") return {};
    begun.set_value();
    release.get_future().wait();
    return {};
  };
  std::thread changer([&] { EXPECT_TRUE(sandboxes_->SetEgress(alice_, sandbox.id, {"1.1.1.1"})); });
  begun.get_future().wait();
  TendFor(1);
  Later(60'000);
  TendFor(3);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  release.set_value();
  changer.join();
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kDestroyed);
}

TEST_F(TendingTest, TheMachineItselfKeepsTheQuota) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}});
  const auto cap = [&] {
    return static_cast<std::int64_t>(*driver_.machines.at(sandbox.id).spec.sent_cap);
  };
  EXPECT_EQ(cap(), 1000 + kCapMargin);
  Sends(sandbox.id, 600);
  ASSERT_TRUE(sandboxes_->Recharge(alice_, sandbox.id, 500));
  EXPECT_EQ(cap(), 1500 + kCapMargin);
  // A counter that begins anew has what is left, and no more.
  Sends(sandbox.id, 100);
  TendFor(3);
  EXPECT_EQ(SentBy(sandbox.id), 700);
  EXPECT_EQ(cap(), 900 + kCapMargin);
  Sends(sandbox.id, 900);
  TendFor(3);
  EXPECT_TRUE(sandboxes_->Get(alice_, sandbox.id)->is_capped);
  EXPECT_EQ(cap(), 900);
  ASSERT_TRUE(store_->Write([&](store::Rows& rows) {
    return rows.PutTenant({.id = "alice", .quota = {.bandwidth_bytes = store::kUnlimited}});
  }));
  EXPECT_FALSE(driver_.machines.at(Make().id).spec.sent_cap);
}

TEST_F(TendingTest, ARechargeThatTheMachineDoesNotTakeIsNone) {
  const Sandbox sandbox = Make();
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "network") return Fail(errors::kMachineUnavailable, "away");
    return {};
  };
  EXPECT_EQ(CodeOf(sandboxes_->Recharge(alice_, sandbox.id, 500)), "control.machine");
  EXPECT_EQ(sandboxes_->Get(alice_, sandbox.id)->bandwidth_quota, 1000);
}

}  // namespace
}  // namespace caisson::control
