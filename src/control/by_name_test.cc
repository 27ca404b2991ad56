// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "control/test_sandboxes.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

class ByName : public SandboxesTest {
 protected:
  CreateRequest Box() const {
    return {.shape = "s-1vcpu-256mb",
            .name = "box",
            .egress = {"240.0.0.0/4", "10.0.0.0/8"},
            .envs = {{"TOKEN", "secret-1"}}};
  }
  FoundOrMade Find(const CreateRequest& request) {
    auto found = sandboxes_->FindOrCreate(alice_, request);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? *std::move(found) : FoundOrMade{};
  }
};

TEST_F(ByName, MakesItOnceAndFindsItThen) {
  const FoundOrMade first = Find(Box());
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(first.made.sandbox.name, "box");
  CreateRequest again = Box();
  std::swap(again.egress[0], again.egress[1]);  // rules have no order
  const FoundOrMade second = Find(again);
  EXPECT_FALSE(second.is_new);
  EXPECT_EQ(second.made.sandbox.id, first.made.sandbox.id);
  EXPECT_EQ(driver_.machines.size(), 1u);
  const auto of_bob = sandboxes_->FindOrCreate(bob_, Box());
  ASSERT_TRUE(of_bob);
  EXPECT_TRUE(of_bob->is_new);
  EXPECT_NE(of_bob->made.sandbox.id, first.made.sandbox.id);
}

TEST_F(ByName, ResumesWhatIsPausedAndReplacesWhatHasEnded) {
  const std::string id = Find(Box()).made.sandbox.id;
  ASSERT_TRUE(sandboxes_->Pause(alice_, id));
  const FoundOrMade resumed = Find(Box());
  EXPECT_EQ(resumed.made.sandbox.id, id);
  EXPECT_EQ(resumed.made.sandbox.state, SandboxState::kRunning);
  EXPECT_EQ(driver_.StateOf(id), machine::State::kRunning);
  ASSERT_TRUE(sandboxes_->Delete(alice_, id));
  const FoundOrMade fresh = Find(Box());
  EXPECT_TRUE(fresh.is_new);
  EXPECT_NE(fresh.made.sandbox.id, id);
}

TEST_F(ByName, RefusesWhatDiffersAndSaysInWhat) {
  const std::string id = Find(Box()).made.sandbox.id;
  const auto refused = [&](const CreateRequest& request) {
    const auto found = sandboxes_->FindOrCreate(alice_, request);
    EXPECT_EQ(CodeOf(found), "control.differs");
    return found ? Status{} : found.error();
  };
  CreateRequest other = Box();
  other.shape = "s-1vcpu-1gb";
  EXPECT_EQ(refused(other).details, "shape");
  EXPECT_NE(refused(other).message.find("shape is s-1vcpu-256mb, not s-1vcpu-1gb"),
            std::string::npos);
  other = Box();
  other.egress = {};
  EXPECT_EQ(refused(other).details, "egress");
  other = Box();
  other.envs["TOKEN"] = "secret-2";
  EXPECT_EQ(refused(other).details, "envs");
  EXPECT_EQ(refused(other).message.find("secret"), std::string::npos);
  other = Box();
  other.disk_mib = 64;
  EXPECT_EQ(refused(other).details, "disk_mib");
  other = Box();
  other.ingress_enabled = true;
  EXPECT_EQ(refused(other).details, "ingress_enabled");
  other = Box();
  other.ingress_token = true;
  EXPECT_EQ(refused(other).details, "ingress_token");
  // The policy has been changed since; nothing is resumed for a request that is refused.
  ASSERT_TRUE(sandboxes_->SetEgress(alice_, id, {"*"}));
  ASSERT_TRUE(sandboxes_->Pause(alice_, id));
  EXPECT_EQ(refused(Box()).details, "egress");
  EXPECT_EQ(StateOf(id), SandboxState::kPaused);
  CreateRequest open = Box();
  open.egress = {};  // the same as "*"
  EXPECT_EQ(Find(open).made.sandbox.id, id);
}

TEST_F(ByName, RefusesWhatIsWrongThoughItExists) {
  Find(Box());
  CreateRequest wrong = Box();
  wrong.shape = "s-9";
  EXPECT_EQ(CodeOf(sandboxes_->FindOrCreate(alice_, wrong)), "control.unknown_shape");
  wrong = Box();
  wrong.name = "Box";
  EXPECT_EQ(CodeOf(sandboxes_->FindOrCreate(alice_, wrong)), "control.bad_name");
  wrong.name = "";
  EXPECT_EQ(CodeOf(sandboxes_->FindOrCreate(alice_, wrong)), "control.bad_name");
}

TEST_F(ByName, GivesItsLifeAnew) {
  CreateRequest request = Box();
  request.delete_after_seconds = 100;
  request.labels = {{"flow", "1"}};
  const Sandbox first = Find(request).made.sandbox;
  Later(60'000);
  request.labels = {{"flow", "2"}};
  request.auto_pause_seconds = 300;
  const Sandbox second = Find(request).made.sandbox;
  EXPECT_EQ(*second.delete_at, *first.delete_at + 60'000);
  EXPECT_EQ(second.labels, request.labels);
  EXPECT_EQ(second.auto_pause_seconds, 300);
  // What a request does not say stays.
  const Sandbox third = Find(Box()).made.sandbox;
  EXPECT_EQ(third.labels, request.labels);
  EXPECT_EQ(third.delete_at, second.delete_at);
}

TEST_F(ByName, OfManyCallersOneMakesIt) {
  constexpr int kCallers = 12;
  std::atomic<int> made = 0;
  std::vector<std::string> ids(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      const auto found = sandboxes_->FindOrCreate(alice_, Box());
      ASSERT_TRUE(found) << found.error().message;
      made += found->is_new ? 1 : 0;
      ids[i] = found->made.sandbox.id;
      EXPECT_EQ(found->made.sandbox.state, SandboxState::kRunning);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 1u);
}

// As when another service makes it over the same store, in between.
TEST_F(ByName, TakesUpWhatSomebodyElseHasMadeInBetween) {
  Sandboxes other(options_, *store_, Drivers(driver_));
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    CreateRequest request = Box();
    request.name = "box-" + std::to_string(round);
    Result<Made> by_post = Made{};
    std::thread rival([&] { by_post = other.Create(alice_, request); });
    const auto found = sandboxes_->FindOrCreate(alice_, request);
    rival.join();
    // While it is being made over there, it is not ours to wait for: the answer says so.
    if (!found) {
      EXPECT_EQ(CodeOf(found), "control.state") << found.error().message;
    } else if (by_post) {
      EXPECT_EQ(found->made.sandbox.id, by_post->sandbox.id);
    } else {
      EXPECT_EQ(CodeOf(by_post), "control.name_taken");
    }
  }
}

TEST_F(ByName, LeavesTheNameFreeWhenItCannotBeMade) {
  driver_.before = [](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "create") return Fail(errors::kMachineFull, "no room");
    return {};
  };
  EXPECT_EQ(CodeOf(sandboxes_->FindOrCreate(alice_, Box())), "control.full");
  driver_.before = Hook::Work();
  EXPECT_TRUE(Find(Box()).is_new);
}

}  // namespace
}  // namespace caisson::control
