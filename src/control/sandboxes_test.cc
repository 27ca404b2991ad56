// SPDX-License-Identifier: Apache-2.0
#include "control/sandboxes.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/error_catalogue.h"
#include "control/networks.h"
#include "control/test_sandboxes.h"
#include "errors/control.h"
#include "errors/egress.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

TEST_F(SandboxesTest, a_create_that_is_to_come_again_leaves_nothing) {
  for (const ErrorCode& code : {errors::kMachinePreparing, errors::kMachineFull}) {
    driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
      if (operation != "create") return {};
      return Fail(code, "ask again");
    };
    const auto made =
        sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .name = "mine"}, {"key", "print"});
    EXPECT_EQ(FindError(made.error().code).http_status, 503) << made.error().message;
    std::int64_t total = 0;
    EXPECT_TRUE(sandboxes_->List(alice_, {}, total)->empty());
    EXPECT_EQ(total, 0);
    EXPECT_TRUE(
        store_->Read([](store::Rows& rows) { return rows.EventsAfter("alice", 0, 10); })->empty());
  }
  driver_.before = nullptr;
  const auto again =
      sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .name = "mine"}, {"key", "print"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sandbox.state, SandboxState::kRunning);
}

TEST_F(SandboxesTest, MakesASandboxThatRuns) {
  const Sandbox sandbox = Make({.shape = "s-2vcpu-4gb", .egress = {"240.0.0.0/4"}});
  EXPECT_EQ(sandbox.state, SandboxState::kRunning);
  EXPECT_EQ(sandbox.memory_mib, 4096);
  EXPECT_EQ(sandbox.disk_mib, 10240);
  EXPECT_EQ(sandbox.egress, (std::vector<std::string>{"240.0.0.0/4"}));
  EXPECT_FALSE(sandbox.name.empty());
  EXPECT_LE(sandbox.name.size(), 22u);
  EXPECT_EQ(sandbox.bandwidth_quota, 1000);
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.host_name, sandbox.name);
}

TEST_F(SandboxesTest, WritesTheRowBeforeTheMachineIsMade) {
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    const SandboxState expected = operation == "create"   ? SandboxState::kCreating
                                  : operation == "pause"  ? SandboxState::kPausing
                                  : operation == "resume" ? SandboxState::kResuming
                                  : operation == "network" || operation == "networks"
                                      ? SandboxState::kResuming
                                  : operation == "destroy" ? SandboxState::kDestroying
                                                           : SandboxState::kError;
    EXPECT_EQ(StateOf(id), expected) << operation;
    return {};
  };
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  ASSERT_TRUE(sandboxes_->Resume(alice_, sandbox.id));
  ASSERT_TRUE(sandboxes_->Delete(alice_, sandbox.id));
  EXPECT_TRUE(AwaitDestroyed(sandbox.id));
}

TEST_F(SandboxesTest, RefusesWhatIsWrongAndNamesTheField) {
  auto code = [&](const CreateRequest& request) { return sandboxes_->Create(alice_, request); };
  const std::string shape = "s-1vcpu-256mb";
  EXPECT_EQ(code({.shape = "s-9"}).error().details, "shape");
  EXPECT_EQ(code({.shape = shape, .rootfs = "nothing"}).error().details, "rootfs");
  EXPECT_EQ(code({.shape = shape, .name = "Upper"}).error().details, "name");
  EXPECT_EQ(code({.shape = shape, .name = std::string(23, 'a')}).error().details, "name");
  EXPECT_EQ(code({.shape = shape, .egress = {"not a rule"}}).error().details, "egress");
  EXPECT_EQ(code({.shape = shape, .envs = {{"1A", ""}}}).error().details, "envs");
  EXPECT_EQ(code({.shape = shape, .envs = {{"A", std::string(4097, 'x')}}}).error().details,
            "envs.A");
  EXPECT_TRUE(code({.shape = shape, .envs = {{"A", std::string(4096, 'x')}}}));
  EXPECT_EQ(code({.shape = shape, .auto_pause_seconds = 59}).error().details,
            "auto_pause_after_seconds");
  EXPECT_EQ(code({.shape = shape, .bandwidth_quota = 5}).error().details, "bandwidth_quota_bytes");
  EXPECT_EQ(code({.shape = shape, .region = "mars"}).error().details, "region");
  EXPECT_EQ(driver_.machines.size(), 1u);
}

TEST_F(SandboxesTest, ShowsNobodyTheSandboxesOfOthers) {
  const Sandbox sandbox = Make();
  EXPECT_EQ(CodeOf(sandboxes_->Get(bob_, sandbox.id)), "control.not_found");
  EXPECT_EQ(CodeOf(sandboxes_->Delete(bob_, sandbox.id)), "control.not_found");
  EXPECT_EQ(CodeOf(sandboxes_->Pause(bob_, sandbox.id)), "control.not_found");
  EXPECT_EQ(CodeOf(sandboxes_->Hold(bob_, sandbox.id)), "control.not_found");
  const Caller token{.tenant = "alice", .actor = "token", .sandbox = "sb-other"};
  EXPECT_EQ(CodeOf(sandboxes_->Get(token, sandbox.id)), "control.not_found");
}

TEST_F(SandboxesTest, KeepsNamesApartUntilTheEnd) {
  const CreateRequest request{.shape = "s-1vcpu-256mb", .name = "box"};
  const Sandbox sandbox = Make(request);
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, request)), "control.name_taken");
  EXPECT_TRUE(sandboxes_->Create(bob_, request));
  ASSERT_TRUE(sandboxes_->Delete(alice_, sandbox.id));
  EXPECT_TRUE(sandboxes_->Create(alice_, request));
}

TEST_F(SandboxesTest, KeepsQuotas) {
  ASSERT_TRUE(store_->Write([&](store::Rows& rows) {
    return rows.PutTenant({.id = "alice", .quota = {.sandboxes = 1}});
  }));
  const Sandbox sandbox = Make();
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.quota");
  EXPECT_TRUE(sandboxes_->Delete(alice_, sandbox.id));
  EXPECT_TRUE(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"}));
}

TEST_F(SandboxesTest, MemoryThatMachinesSaveToTheDiskIsOnTheAccountOfTheDisk) {
  const auto quota_of_disk = [this](std::int64_t mib) {
    ASSERT_TRUE(store_->Write([&](store::Rows& rows) {
      return rows.PutTenant({.id = "alice", .quota = {.disk_mib = mib}});
    }));
  };
  driver_.saves_memory = true;
  quota_of_disk(10240 + 2 * 256 - 1);
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.quota");
  quota_of_disk(2 * (10240 + 2 * 256) - 1);
  EXPECT_TRUE(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"}));
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.quota");
  driver_.saves_memory = false;
  EXPECT_TRUE(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"}));
}

TEST_F(SandboxesTest, WhatIsBeingPreparedIsToldAsSuchAndSucceedsLater) {
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "create") return Fail(errors::kMachinePreparing, "soon");
    return {};
  };
  const CreateRequest request{.shape = "s-1vcpu-256mb", .name = "box"};
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, request)), "control.preparing");
  driver_.before = nullptr;
  EXPECT_TRUE(sandboxes_->Create(alice_, request));
}

TEST_F(SandboxesTest, AFailedBootLeavesAFailedRowAndNoMachine) {
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "create") return Fail(errors::kMachineVmFailed, "no room");
    return {};
  };
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .name = "box"})),
            "control.machine");
  std::int64_t total = 0;
  const auto rows = sandboxes_->List(alice_, {}, total).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].state, SandboxState::kFailed);
  EXPECT_EQ(rows[0].failure, "no room");
  driver_.before = nullptr;
  EXPECT_TRUE(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .name = "box"}));
}

TEST_F(SandboxesTest, PausesAndResumesIdempotently) {
  const Sandbox sandbox = Make();
  for (int i = 0; i < 2; ++i) {
    auto paused = sandboxes_->Pause(alice_, sandbox.id);
    ASSERT_TRUE(paused);
    EXPECT_EQ(paused->state, SandboxState::kPaused);
    EXPECT_TRUE(paused->paused_at);
  }
  auto held = sandboxes_->Hold(alice_, sandbox.id);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().message, "sandbox is paused; resume it before accessing files");
  for (int i = 0; i < 2; ++i) {
    auto resumed = sandboxes_->Resume(alice_, sandbox.id);
    ASSERT_TRUE(resumed);
    EXPECT_EQ(resumed->state, SandboxState::kRunning);
    EXPECT_TRUE(resumed->last_resumed_at);
  }
}

TEST_F(SandboxesTest, RunsOnWhenAPauseFails) {
  const Sandbox sandbox = Make();
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "pause") return Fail(errors::kMachineUnavailable, "no freezer");
    return {};
  };
  EXPECT_EQ(CodeOf(sandboxes_->Pause(alice_, sandbox.id)), "control.machine");
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
}

TEST_F(SandboxesTest, AFailedResumeIsAnErrorThatCanBeTriedAgain) {
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "resume") return Fail(errors::kMachineUnavailable, "not now");
    return {};
  };
  EXPECT_FALSE(sandboxes_->Resume(alice_, sandbox.id));
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kError);
  driver_.before = nullptr;
  EXPECT_TRUE(sandboxes_->Resume(alice_, sandbox.id));
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
}

TEST_F(SandboxesTest, ForksOnlyWhatIsPaused) {
  const Sandbox parent =
      Make({.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}, .envs = {{"A", "1"}}});
  EXPECT_EQ(CodeOf(sandboxes_->Fork(alice_, parent.id, {})), "control.state");
  ASSERT_TRUE(sandboxes_->Pause(alice_, parent.id));
  const auto child = sandboxes_->Fork(alice_, parent.id, {});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->sandbox.state, SandboxState::kRunning);
  EXPECT_EQ(child->sandbox.forked_from, parent.id);
  EXPECT_NE(child->sandbox.name, parent.name);
  EXPECT_EQ(driver_.forked, machine::Extent::kFull);
  EXPECT_EQ(child->sandbox.egress, parent.egress);
  EXPECT_EQ(child->sandbox.envs, parent.envs);
  EXPECT_EQ(StateOf(parent.id), SandboxState::kPaused);
  const auto paused = sandboxes_->Fork(alice_, parent.id,
                                       {.start_paused = true,
                                        .most = machine::Extent::kFilesystem,
                                        .egress = std::vector<std::string>{}});
  ASSERT_TRUE(paused);
  EXPECT_EQ(driver_.forked, machine::Extent::kFilesystem);
  EXPECT_EQ(paused->sandbox.state, SandboxState::kPaused);
  EXPECT_TRUE(paused->sandbox.egress.empty());
}

TEST_F(SandboxesTest, DeletesOnceAndSaysSoForAWhile) {
  const Sandbox sandbox = Make();
  EXPECT_EQ(sandboxes_->Delete(alice_, sandbox.id)->state, SandboxState::kDestroying);
  EXPECT_TRUE(AwaitDestroyed(sandbox.id));
  for (int i = 0; i < 2; ++i) {
    auto deleted = sandboxes_->Delete(alice_, sandbox.id);
    ASSERT_TRUE(deleted);
    EXPECT_EQ(deleted->state, SandboxState::kDestroyed);
    EXPECT_TRUE(deleted->destroyed_at);
  }
  EXPECT_EQ(CodeOf(sandboxes_->Pause(alice_, sandbox.id)), "control.state");
  Later(Milliseconds{11} * 60'000);
  TendFor(60);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kDestroyed);
  Later(Milliseconds{11} * 60'000);
  TendFor(60);
  EXPECT_EQ(CodeOf(sandboxes_->Get(alice_, sandbox.id)), "control.not_found");
}

TEST_F(SandboxesTest, TriesAgainToDestroy) {
  const Sandbox sandbox = Make();
  std::atomic<bool> fails = true;
  driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "destroy" && fails) return Fail(errors::kMachineUnavailable, "away");
    return {};
  };
  auto deleted = sandboxes_->Delete(alice_, sandbox.id);
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->state, SandboxState::kDestroying);
  fails = false;
  for (int i = 0; i < 100 && StateOf(sandbox.id) != SandboxState::kDestroyed; ++i) TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kDestroyed);
  EXPECT_FALSE(driver_.Has(sandbox.id));
}

TEST_F(SandboxesTest, a_delete_waits_for_nothing_and_nobody_uses_what_is_going) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .name = "box"});
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "destroy") released.wait();
    return {};
  };
  for (int i = 0; i < 2; ++i) {
    // The second comes while the machine is going, and says the same.
    EXPECT_EQ(i == 0 ? sandboxes_->Delete(alice_, sandbox.id)->state : StateOf(sandbox.id),
              SandboxState::kDestroying);
  }
  EXPECT_EQ(CodeOf(sandboxes_->Hold(alice_, sandbox.id)), "control.state");
  // Its name is free.
  const auto second = sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .name = "box"});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE(second->sandbox.id, sandbox.id);
  EXPECT_TRUE(driver_.Has(sandbox.id));
  release.set_value();
  EXPECT_TRUE(AwaitDestroyed(sandbox.id));
  EXPECT_FALSE(driver_.Has(sandbox.id));
  EXPECT_TRUE(driver_.Has(second->sandbox.id));
}

TEST_F(SandboxesTest, what_is_going_makes_room_in_the_quota_for_what_is_asked_for_meanwhile) {
  ASSERT_TRUE(store_->Write([](store::Rows& rows) {
    return rows.PutTenant({.id = "alice", .quota = {.sandboxes = 1}});
  }));
  const Sandbox first = Make();
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.quota");
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "destroy") released.wait();
    return {};
  };
  ASSERT_TRUE(sandboxes_->Delete(alice_, first.id));
  std::atomic<bool> made = false;
  std::jthread asker([&] {
    EXPECT_TRUE(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"}));
    made = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(made);  // the machine that goes still has its place
  release.set_value();
  asker.join();
  EXPECT_TRUE(made);
}

TEST_F(SandboxesTest, PausesWhatIsIdleAndNotWhatIsInUse) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .auto_pause_seconds = 60});
  Later(59'000);
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  {
    auto held = sandboxes_->Hold(alice_, sandbox.id);
    ASSERT_TRUE(held);
    Later(3600'000);
    TendFor(1);
    EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  }
  Later(59'000);
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  Later(1'000);
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kPaused);
  ASSERT_TRUE(sandboxes_->Resume(alice_, sandbox.id));
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
}

TEST_F(SandboxesTest, DeletesWhatHasHadItsTime) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .delete_after_seconds = 10});
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  Later(10'000);
  TendFor(1);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kDestroyed);
}

TEST_F(SandboxesTest, AWallClockThatJumpsNeitherPausesNorDeletesNorKeeps) {
  const Sandbox idle = Make({.shape = "s-1vcpu-256mb", .auto_pause_seconds = 60});
  const Sandbox wish = Make({.shape = "s-1vcpu-256mb", .delete_after_seconds = 100});
  TendFor(1);
  WallClockJumps(3600'000);
  TendFor(1);
  EXPECT_EQ(StateOf(idle.id), SandboxState::kRunning);
  EXPECT_EQ(StateOf(wish.id), SandboxState::kRunning);
  EXPECT_EQ(sandboxes_->SinceTended(), 0);
  WallClockJumps(-7200'000);
  Later(60'000);
  TendFor(1);
  EXPECT_EQ(StateOf(idle.id), SandboxState::kPaused);
  EXPECT_EQ(StateOf(wish.id), SandboxState::kRunning);
  Later(40'000);
  TendFor(1);
  EXPECT_EQ(StateOf(wish.id), SandboxState::kDestroyed);
}

TEST_F(SandboxesTest, FindsMachinesThatDiedThoughTheWallClockWentBack) {
  const Sandbox gone = Make();
  driver_.machines.erase(gone.id);
  WallClockJumps(-3600'000);
  TendFor(3);
  EXPECT_EQ(StateOf(gone.id), SandboxState::kFailed);
}

TEST_F(SandboxesTest, ForgetsWhatTheAuditLogHasKeptLongEnough) {
  const auto append = [&](Milliseconds at) {
    EXPECT_TRUE(store_->Write([&](store::Rows& rows) {
      return rows.AppendAudit({.at = at, .tenant = "alice", .action = "POST /v1/sandboxes"});
    }));
  };
  append(now_ - options_.keep_audit - 1);
  append(now_ - options_.keep_audit);
  TendFor(60);
  const auto kept = store_->Read([](store::Rows& rows) { return rows.AuditAfter(0, 10); });
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 1U);
  EXPECT_EQ(kept->front().at, now_ - options_.keep_audit);
}

TEST_F(SandboxesTest, AnIdempotencyKeyMakesOne) {
  const CreateRequest request{.shape = "s-1vcpu-256mb"};
  const auto first = sandboxes_->Create(alice_, request, {"key", "print"});
  const auto second = sandboxes_->Create(alice_, request, {"key", "print"});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->sandbox.id, second->sandbox.id);
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, request, {"key", "other"})), "control.idempotency");
  EXPECT_TRUE(sandboxes_->Create(bob_, request, {"key", "other"}));
  EXPECT_EQ(driver_.machines.size(), 2u);
}

TEST_F(SandboxesTest, OldRulesStandWhenNewOnesCannotBeApplied) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}});
  EXPECT_EQ(CodeOf(sandboxes_->SetEgress(alice_, sandbox.id, {"nonsense rule"})),
            "egress.bad_rule");
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "network") return Fail(errors::kMachineUnavailable, "nft failed");
    return {};
  };
  EXPECT_FALSE(sandboxes_->SetEgress(alice_, sandbox.id, {"9.9.9.9"}));
  EXPECT_EQ(sandboxes_->Get(alice_, sandbox.id)->egress, (std::vector<std::string>{"1.1.1.1"}));
  driver_.before = nullptr;
  ASSERT_TRUE(sandboxes_->SetEgress(alice_, sandbox.id, {"9.9.9.9"}));
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.network.rules(),
            (std::vector<std::string>{"9.9.9.9"}));
}

TEST_F(SandboxesTest, ClosesTheNetworkWhenTheQuotaIsUsedUp) {
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}});
  driver_.machines.at(sandbox.id).stats.network_sent_bytes = 1000;
  TendFor(3);
  EXPECT_TRUE(sandboxes_->Get(alice_, sandbox.id)->is_capped);
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.network, egress::Policy::DenyAll());
  // New rules do not open it.
  ASSERT_TRUE(sandboxes_->SetEgress(alice_, sandbox.id, {"9.9.9.9"}));
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.network, egress::Policy::DenyAll());
  const auto recharged = sandboxes_->Recharge(alice_, sandbox.id, 500);
  ASSERT_TRUE(recharged);
  EXPECT_FALSE(recharged->is_capped);
  EXPECT_EQ(recharged->bandwidth_quota, 1500);
  EXPECT_EQ(driver_.machines.at(sandbox.id).spec.network.rules(),
            (std::vector<std::string>{"9.9.9.9"}));
  // Counters that begin anew add up.
  driver_.machines.at(sandbox.id).stats.network_sent_bytes = 100;
  EXPECT_EQ(sandboxes_->ReadBandwidth(alice_, sandbox.id)->bytes_out, 1100);
}

TEST_F(SandboxesTest, AdoptsWhatLivesAndDestroysWhatNobodyOwns) {
  const Sandbox running = Make();
  const Sandbox paused = Make();
  const Sandbox gone = Make();
  const Sandbox stopped = Make();
  const Sandbox half_paused = Make();
  const Sandbox half_made = Make();
  const Sandbox half_gone = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, paused.id));
  ASSERT_TRUE(driver_.Create({.id = "sb-orphan"}));
  driver_.machines.erase(gone.id);
  driver_.machines.at(stopped.id).machine.state = machine::State::kStopped;
  auto set = [&](const std::string& id, SandboxState state) {
    ASSERT_TRUE(store_->Write([&](store::Rows& rows) -> Result<void> {
      CAISSON_ASSIGN(auto row, rows.FindSandbox(id));
      row->state = state;
      return rows.UpdateSandbox(*row);
    }));
  };
  set(half_paused.id, SandboxState::kPausing);
  set(half_made.id, SandboxState::kCreating);
  set(half_gone.id, SandboxState::kDestroying);
  Restart();
  ASSERT_TRUE(sandboxes_->Adopt());
  EXPECT_EQ(StateOf(running.id), SandboxState::kRunning);
  EXPECT_EQ(StateOf(paused.id), SandboxState::kPaused);
  EXPECT_EQ(StateOf(gone.id), SandboxState::kFailed);
  EXPECT_EQ(StateOf(stopped.id), SandboxState::kRunning);
  EXPECT_EQ(driver_.StateOf(stopped.id), machine::State::kRunning);
  EXPECT_EQ(StateOf(half_paused.id), SandboxState::kPaused);
  EXPECT_EQ(StateOf(half_made.id), SandboxState::kFailed);
  EXPECT_FALSE(driver_.Has(half_made.id));
  EXPECT_EQ(StateOf(half_gone.id), SandboxState::kDestroyed);
  EXPECT_FALSE(driver_.Has(half_gone.id));
  EXPECT_FALSE(driver_.Has("sb-orphan"));
}

// As a service that is killed between a row and the driver's call leaves it.
TEST_F(SandboxesTest, BringsMachinesWhereTheirRowsSayThatTheirNetworksAre) {
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.Create(alice_, "lab"));
  const CreateRequest open{.shape = "s-1vcpu-256mb", .egress = {"1.1.1.1"}, .networks = {"lab"}};
  const Sandbox narrowed = Make(open);
  const Sandbox capped = Make(open);
  const Sandbox left = Make(open);
  const Sandbox paused = Make(open);
  ASSERT_TRUE(sandboxes_->Pause(alice_, paused.id));
  const auto set = [&](const std::string& id, const std::function<void(Sandbox&)>& change) {
    ASSERT_TRUE(store_->Write([&](store::Rows& rows) -> Result<void> {
      CAISSON_ASSIGN(auto row, rows.FindSandbox(id));
      change(*row);
      return rows.UpdateSandbox(*row);
    }));
  };
  set(narrowed.id, [](Sandbox& row) { row.egress.clear(); });
  set(capped.id, [](Sandbox& row) { row.is_capped = true; });
  ASSERT_TRUE(store_->Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto lab, rows.FindNetwork("alice", "lab"));
    CAISSON_TRY(rows.RemoveMember(lab->id, left.id));
    return {};
  }));
  Restart();
  ASSERT_TRUE(sandboxes_->Adopt());
  const auto spec = [&](const Sandbox& of) { return driver_.machines.at(of.id).spec; };
  EXPECT_TRUE(spec(narrowed).network.rules().empty());
  EXPECT_EQ(spec(capped).network, egress::Policy::DenyAll());
  EXPECT_TRUE(spec(left).shared_networks.empty());
  EXPECT_EQ(spec(capped).shared_networks.size(), 1U);
  set(paused.id, [](Sandbox& row) { row.egress.clear(); });
  ASSERT_TRUE(sandboxes_->Resume(alice_, paused.id));
  EXPECT_TRUE(spec(paused).network.rules().empty());
}

TEST_F(SandboxesTest, NothingRunsWithANetworkThatIsNotAsItsRowSays) {
  const Sandbox running = Make();
  const Sandbox unstoppable = Make();
  const Sandbox paused = Make();
  const Sandbox stopped = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, paused.id));
  driver_.machines.at(stopped.id).machine.state = machine::State::kStopped;
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    const bool fails = operation == "network" || (operation == "pause" && id == unstoppable.id);
    if (fails) return Fail(errors::kMachineUnavailable, "the packet filter fails");
    return {};
  };
  Restart();
  ASSERT_TRUE(sandboxes_->Adopt());
  EXPECT_EQ(StateOf(running.id), SandboxState::kPaused);
  EXPECT_EQ(driver_.StateOf(running.id), machine::State::kPausedInMemory);
  EXPECT_EQ(StateOf(unstoppable.id), SandboxState::kFailed);
  EXPECT_FALSE(driver_.Has(unstoppable.id));
  EXPECT_EQ(StateOf(paused.id), SandboxState::kPaused);
  EXPECT_EQ(StateOf(stopped.id), SandboxState::kError);
  EXPECT_EQ(driver_.StateOf(stopped.id), machine::State::kStopped);
  for (const std::string& id : {running.id, paused.id, stopped.id}) {
    EXPECT_FALSE(sandboxes_->Resume(alice_, id));
    EXPECT_EQ(StateOf(id), SandboxState::kError);
    EXPECT_NE(driver_.StateOf(id), machine::State::kRunning);
  }
  driver_.before = nullptr;
  for (const std::string& id : {running.id, paused.id, stopped.id}) {
    EXPECT_TRUE(sandboxes_->Resume(alice_, id));
  }
}

TEST_F(SandboxesTest, FindsMachinesThatDied) {
  const Sandbox stopped = Make();
  const Sandbox gone = Make();
  driver_.machines.at(stopped.id).machine.state = machine::State::kStopped;
  driver_.machines.erase(gone.id);
  Later(1000);
  TendFor(3);
  EXPECT_EQ(StateOf(stopped.id), SandboxState::kError);
  EXPECT_EQ(StateOf(gone.id), SandboxState::kFailed);
  EXPECT_TRUE(sandboxes_->Resume(alice_, stopped.id));
}

TEST_F(SandboxesTest, LeavesRowsAloneWhileTheHelperIsAway) {
  const Sandbox sandbox = Make();
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "list") return Fail(errors::kMachineUnavailable, "away");
    return {};
  };
  Later(1000);
  TendFor(6);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
}

TEST_F(SandboxesTest, DeletingAndResumingAtOnceEndsDestroyed) {
  for (int round = 0; round < 20; ++round) {
    const Sandbox sandbox = Make();
    std::thread one([&] { static_cast<void>(sandboxes_->Pause(alice_, sandbox.id)); });
    std::thread two([&] { static_cast<void>(sandboxes_->Resume(alice_, sandbox.id)); });
    std::thread three([&] { EXPECT_TRUE(sandboxes_->Delete(alice_, sandbox.id)); });
    one.join();
    two.join();
    three.join();
    EXPECT_TRUE(AwaitDestroyed(sandbox.id));
    EXPECT_FALSE(driver_.Has(sandbox.id));
  }
}

TEST_F(SandboxesTest, TellsEveryTransition) {
  const Sandbox sandbox = Make();
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  const auto events =
      store_->Read([](store::Rows& rows) { return rows.EventsAfter("alice", 0, 100); }).value();
  std::vector<std::string> types;
  for (const store::Event& event : events) types.push_back(event.type);
  EXPECT_EQ(types,
            (std::vector<std::string>{"sandbox.running", "sandbox.pausing", "sandbox.paused"}));
}

TEST_F(SandboxesTest, TakesNothingNewWhileDraining) {
  const Sandbox sandbox = Make();
  sandboxes_->Drain();
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.draining");
  EXPECT_TRUE(sandboxes_->Delete(alice_, sandbox.id));
}

TEST_F(SandboxesTest, MakesMachinesWithTheDriverThatIsAskedFor) {
  FakeDriver other;
  other.name = "other";
  Restart({&driver_, &other});
  const Sandbox standard = Make();
  EXPECT_EQ(standard.driver, "fake");
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .driver = "other"});
  EXPECT_EQ(sandbox.driver, "other");
  EXPECT_TRUE(other.Has(sandbox.id));
  EXPECT_FALSE(driver_.Has(sandbox.id));
  const auto unknown = sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .driver = "teapot"});
  EXPECT_EQ(CodeOf(unknown), "control.unknown_driver");
  EXPECT_EQ(unknown.error().details, "driver");
  ASSERT_TRUE(sandboxes_->Pause(alice_, sandbox.id));
  EXPECT_EQ(other.StateOf(sandbox.id), machine::State::kPausedInMemory);
  EXPECT_EQ(CodeOf(sandboxes_->Fork(alice_, sandbox.id, {.driver = "fake"})),
            "control.other_driver");
  const auto fork = sandboxes_->Fork(alice_, sandbox.id, {});
  ASSERT_TRUE(fork);
  EXPECT_TRUE(other.Has(fork->sandbox.id));
  TendFor(3);
  EXPECT_TRUE(driver_.Has(standard.id));
  EXPECT_TRUE(other.Has(fork->sandbox.id));
}

TEST_F(SandboxesTest, LeavesTheMachinesOfADriverAloneThatIsNotThere) {
  FakeDriver other;
  other.name = "other";
  Restart({&driver_, &other});
  const Sandbox sandbox = Make({.shape = "s-1vcpu-256mb", .driver = "other"});
  Restart();
  ASSERT_TRUE(sandboxes_->Adopt());
  TendFor(6);
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  EXPECT_EQ(CodeOf(sandboxes_->Pause(alice_, sandbox.id)), "control.machine");
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kRunning);
  EXPECT_EQ(sandboxes_->Delete(alice_, sandbox.id)->state, SandboxState::kDestroying);
  EXPECT_TRUE(other.Has(sandbox.id));
  Restart({&driver_, &other});
  ASSERT_TRUE(sandboxes_->Adopt());
  EXPECT_EQ(StateOf(sandbox.id), SandboxState::kDestroyed);
  EXPECT_FALSE(other.Has(sandbox.id));
}

TEST_F(SandboxesTest, APreviewRequestWakesOnlyWhatShallWake) {
  const Sandbox asleep = Make({.shape = "s-1vcpu-256mb", .ingress_enabled = true});
  const Sandbox wakes =
      Make({.shape = "s-1vcpu-256mb", .ingress_enabled = true, .ingress_wakes = true});
  for (const std::string& id : {asleep.id, wakes.id}) {
    ASSERT_TRUE(sandboxes_->Pause(alice_, id));
  }
  EXPECT_EQ(CodeOf(sandboxes_->HoldForIngress(asleep.id, "")), "control.paused");
  const auto held = sandboxes_->HoldForIngress(wakes.id, "");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->sandbox.state, SandboxState::kRunning);
  ASSERT_TRUE(sandboxes_->Patch(alice_, asleep.id, {.ingress_wakes = true}));
  EXPECT_TRUE(sandboxes_->HoldForIngress(asleep.id, ""));
}

TEST_F(SandboxesTest, JoinsSandboxesInNetworks) {
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.AreThere());
  const auto made = networks.Create(alice_, "lab");
  ASSERT_TRUE(made);
  const std::string id = made->network.id;
  EXPECT_EQ(CodeOf(networks.Create(alice_, "lab")), "control.bad_network");
  EXPECT_EQ(CodeOf(networks.Create(alice_, "")), "control.bad_network");
  EXPECT_EQ(CodeOf(networks.Get(bob_, "lab")), "control.not_found");
  const Sandbox first = Make({.shape = "s-1vcpu-256mb", .networks = {"lab"}});
  EXPECT_EQ(driver_.machines.at(first.id).spec.shared_networks, std::set<std::string>{id});
  const Sandbox second = Make();
  EXPECT_EQ(CodeOf(sandboxes_->Join(bob_, second.id, id)), "control.not_found");
  ASSERT_TRUE(sandboxes_->Join(alice_, second.id, "lab"));
  ASSERT_TRUE(sandboxes_->Join(alice_, second.id, id));  // it is in already
  EXPECT_EQ(driver_.machines.at(second.id).spec.shared_networks, std::set<std::string>{id});
  EXPECT_EQ(networks.Get(alice_, id)->members.size(), 2U);
  EXPECT_EQ(CodeOf(networks.Delete(alice_, id)), "control.in_use");
  ASSERT_TRUE(sandboxes_->Leave(alice_, second.id, "lab"));
  EXPECT_EQ(CodeOf(sandboxes_->Leave(alice_, second.id, "lab")), "control.not_found");
  EXPECT_TRUE(driver_.machines.at(second.id).spec.shared_networks.empty());
  ASSERT_TRUE(sandboxes_->Delete(alice_, first.id));
  EXPECT_TRUE(networks.Delete(alice_, id));
  EXPECT_TRUE(networks.List(alice_)->empty());
}

TEST_F(SandboxesTest, StaysInItsNetworksWhenTheDriverCannotChangeThem) {
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.Create(alice_, "lab"));
  const Sandbox sandbox = Make();
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation != "networks") return {};
    return Fail(errors::kMachineUnavailable, "the packet filter fails");
  };
  EXPECT_EQ(CodeOf(sandboxes_->Join(alice_, sandbox.id, "lab")), "control.machine");
  EXPECT_TRUE(networks.Get(alice_, "lab")->members.empty());
  driver_.before = nullptr;
  ASSERT_TRUE(sandboxes_->Join(alice_, sandbox.id, "lab"));
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation != "networks") return {};
    return Fail(errors::kMachineUnavailable, "the packet filter fails");
  };
  EXPECT_EQ(CodeOf(sandboxes_->Leave(alice_, sandbox.id, "lab")), "control.machine");
  EXPECT_EQ(networks.Get(alice_, "lab")->members.size(), 1U);
}

TEST_F(SandboxesTest, IngressNeedsItsSwitchAndItsToken) {
  auto made = sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb", .ingress_token = true});
  const std::string id = made->sandbox.id;
  EXPECT_EQ(CodeOf(sandboxes_->HoldForIngress(id, made->ingress_token)), "control.not_found");
  ASSERT_TRUE(sandboxes_->Patch(alice_, id, {.ingress_enabled = true}));
  EXPECT_EQ(CodeOf(sandboxes_->HoldForIngress(id, "")), "control.not_found");
  EXPECT_TRUE(sandboxes_->HoldForIngress(id, made->ingress_token));
  ASSERT_TRUE(sandboxes_->Patch(alice_, id, {.ingress_token = false}));
  EXPECT_TRUE(sandboxes_->HoldForIngress(id, ""));
}

}  // namespace
}  // namespace caisson::control
