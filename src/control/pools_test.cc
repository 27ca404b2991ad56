// SPDX-License-Identifier: Apache-2.0
#include "control/pools.h"

#include <set>
#include <thread>

#include "control/test_sandboxes.h"
#include "errors/control.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

using store::PoolPlace;

class PoolsTest : public SandboxesTest {
 protected:
  PoolsTest() {
    options_.warm_up = [this](machine::Driver&, const Sandbox& row, const Warm& warm,
                              const std::stop_token&) -> Result<std::string> {
      if (warm.command == "dies") return Fail(errors::kControlWarmFailed, "ended with exit code 3");
      ++warmed_;
      return "warm of " + row.id;
    };
    options_.warm_check = [this](machine::Driver&, const Sandbox& row) -> Result<void> {
      const std::lock_guard lock(mutex_);
      if (!dead_.contains(row.id)) return {};
      return Fail(errors::kControlWarmFailed, "ended with exit code 9");
    };
    Again();
  }
  ~PoolsTest() override { pools_.reset(); }

  // As after a restart of the service.
  void Again() {
    pools_.reset();
    Restart();
    EXPECT_TRUE(sandboxes_->Adopt());
    pools_ = std::make_unique<Pools>(*sandboxes_, std::chrono::milliseconds(0));
  }
  static PoolRequest Of(std::int64_t size, const std::string& command = "serve") {
    PoolRequest request{.size = size};
    request.definition.sandbox = {.shape = "s-1vcpu-256mb", .egress = {"240.0.0.0/4"}};
    request.definition.warm = Warm{.command = command, .ready = "ready"};
    return request;
  }
  PoolView Put(const PoolRequest& request, const std::string& name = "p") {
    auto put = pools_->Put(alice_, name, request);
    EXPECT_TRUE(put) << (put ? "" : put.error().message);
    Fill();
    return pools_->Get(alice_, name).value();
  }
  void Fill() {
    for (int i = 0; i < 3; ++i) {
      pools_->Tend();
      pools_->Await(std::chrono::seconds(10));
    }
  }
  Result<Made> Take(const Caller& caller, const std::string& name = "") {
    return sandboxes_->Create(caller, {.name = name, .pool = "p"});
  }
  std::vector<Sandbox> Waiting() {
    auto rows = store_->Read([](store::Rows& all) {
      return all.Sandboxes({.states = {SandboxState::kRunning}, .with_pooled = true});
    });
    std::erase_if(*rows, [](const Sandbox& row) { return row.place == PoolPlace::kNone; });
    return *rows;
  }
  std::int64_t Total(const Caller& caller) {
    std::int64_t total = 0;
    EXPECT_TRUE(sandboxes_->List(caller, {}, total));
    return total;
  }

  std::mutex mutex_;
  std::set<std::string> dead_;  // machines whose warm process has ended
  std::atomic<int> warmed_ = 0;
  std::unique_ptr<Pools> pools_;
};

TEST_F(PoolsTest, hands_out_what_waits_once_and_makes_another) {
  EXPECT_EQ(Put(Of(2)).ready, 2);
  std::set<std::string> waited;
  for (const Sandbox& row : Waiting()) waited.insert(row.id);
  const auto first = Take(alice_, "mine");
  const auto second = Take(alice_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->was_ready, true);
  EXPECT_EQ(second->was_ready, true);
  EXPECT_EQ((std::set{first->sandbox.id, second->sandbox.id}), waited);
  EXPECT_EQ(first->sandbox.name, "mine");
  EXPECT_EQ(first->sandbox.warm_process, "warm of " + first->sandbox.id);
  EXPECT_EQ(sandboxes_->Get(alice_, first->sandbox.id)->created_by, "key-1");
  EXPECT_TRUE(Waiting().empty());
  Fill();
  const auto view = pools_->Get(alice_, "p").value();
  EXPECT_EQ(view.ready, 2);
  EXPECT_EQ(view.row.handed_out, 2);
  EXPECT_EQ(view.row.missed, 0);
  for (const Sandbox& row : Waiting()) EXPECT_FALSE(waited.contains(row.id));
}

TEST_F(PoolsTest, makes_one_in_the_ordinary_way_when_none_is_ready) {
  ASSERT_TRUE(pools_->Put(alice_, "p", Of(1)));
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, false);
  EXPECT_EQ(made->sandbox.warm_process, "warm of " + made->sandbox.id);
  EXPECT_EQ(made->sandbox.egress, std::vector<std::string>{"240.0.0.0/4"});
  EXPECT_EQ(pools_->Get(alice_, "p")->row.missed, 1);
}

TEST_F(PoolsTest, hands_out_each_to_one_of_many_who_ask_at_once) {
  Put(Of(4));
  std::vector<std::jthread> takers;
  std::mutex mutex;
  std::multiset<std::string> taken;
  int ready = 0;
  for (int i = 0; i < 8; ++i) {
    takers.emplace_back([&] {
      const auto made = Take(alice_);
      const std::lock_guard lock(mutex);
      ASSERT_TRUE(made);
      taken.insert(made->sandbox.id);
      ready += made->was_ready.value() ? 1 : 0;
    });
  }
  takers.clear();
  EXPECT_EQ(taken.size(), 8U);
  EXPECT_EQ((std::set(taken.begin(), taken.end()).size()), 8U);
  EXPECT_LE(ready, 4);
  EXPECT_EQ(pools_->Get(alice_, "p")->row.handed_out, ready);
}

TEST_F(PoolsTest, nobody_reaches_what_waits) {
  Put(Of(1));
  const Sandbox waiting = Waiting().at(0);
  EXPECT_EQ(Total(alice_), 0);
  for (const Caller& caller : {alice_, bob_}) {
    EXPECT_EQ(CodeOf(sandboxes_->Get(caller, waiting.id)), "control.not_found");
    EXPECT_EQ(CodeOf(sandboxes_->Hold(caller, waiting.id)), "control.not_found");
    EXPECT_EQ(CodeOf(sandboxes_->Delete(caller, waiting.id)), "control.not_found");
    EXPECT_EQ(CodeOf(sandboxes_->Pause(caller, waiting.id)), "control.not_found");
    EXPECT_EQ(CodeOf(sandboxes_->GetByIp(caller, waiting.ip)), "control.not_found");
    EXPECT_EQ(CodeOf(sandboxes_->SetEgress(caller, waiting.id, {"*"})), "control.not_found");
  }
  const auto visit = sandboxes_->HoldForIngress(waiting.id, "");
  EXPECT_EQ(CodeOf(visit), "control.not_found");
}

TEST_F(PoolsTest, nobody_takes_from_the_pool_of_another_tenant) {
  Put(Of(1));
  EXPECT_EQ(CodeOf(Take(bob_)), "control.not_found");
  EXPECT_EQ(CodeOf(pools_->Get(bob_, "p")), "control.not_found");
  EXPECT_EQ(CodeOf(pools_->Delete(bob_, "p")), "control.not_found");
  EXPECT_TRUE(pools_->List(bob_)->empty());
  // The same name is another pool.
  ASSERT_TRUE(pools_->Put(bob_, "p", Of(1)));
  const auto made = Take(bob_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, false);
  EXPECT_EQ(made->sandbox.tenant, "bob");
  EXPECT_EQ(Waiting().size(), 1U);
}

TEST_F(PoolsTest, never_hands_out_what_an_older_definition_made) {
  Put(Of(2));
  const auto before = Waiting();
  PoolRequest other = Of(2);
  other.definition.warm->args = {"--other"};
  auto put = pools_->Put(alice_, "p", other);
  ASSERT_TRUE(put);
  EXPECT_FALSE(put->is_new);
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, false);
  Fill();
  for (const Sandbox& old : before) EXPECT_FALSE(driver_.Has(old.id));
  EXPECT_EQ(Waiting().size(), 2U);
}

TEST_F(PoolsTest, the_same_definition_changes_nothing_and_another_size_keeps_what_waits) {
  Put(Of(2));
  const auto before = Waiting();
  Put(Of(2));
  EXPECT_EQ(warmed_, 2);
  EXPECT_EQ(Put(Of(3)).ready, 3);
  EXPECT_EQ(warmed_, 3);
  for (const Sandbox& row : before) EXPECT_TRUE(driver_.Has(row.id));
  EXPECT_EQ(Put(Of(1)).ready, 1);
}

TEST_F(PoolsTest, hands_out_nothing_of_an_image_that_has_been_replaced) {
  Put(Of(1));
  options_.catalogue = [] {
    return std::vector<RootImage>{{.name = "devbox:1", .description = {}, .image = "newer"}};
  };
  Again();
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, false);
  EXPECT_EQ(made->sandbox.image, "newer");
  Fill();
  ASSERT_EQ(Waiting().size(), 1U);
  EXPECT_EQ(Waiting().at(0).image, "newer");
}

TEST_F(PoolsTest, a_warm_process_that_dies_early_is_an_error_of_the_pool) {
  auto view = Put(Of(2, "dies"));
  EXPECT_EQ(view.ready, 0);
  EXPECT_NE(view.error.find("exit code 3"), std::string::npos) << view.error;
  EXPECT_TRUE(driver_.machines.empty());
  // Not again at once, and not several then.
  std::atomic<int> made = 0;
  driver_.before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation == "create") ++made;
    return {};
  };
  Fill();
  EXPECT_EQ(made, 0);
  Later(10'000);
  Fill();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(CodeOf(Take(alice_)), "control.warm_failed");
  EXPECT_TRUE(driver_.machines.empty());
}

TEST_F(PoolsTest, hands_out_no_machine_whose_warm_process_has_died_and_replaces_it) {
  Put(Of(2));
  const auto before = Waiting();
  {
    const std::lock_guard lock(mutex_);
    for (const Sandbox& row : before) dead_.insert(row.id);
  }
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, false);
  Later(6000);
  Fill();
  for (const Sandbox& row : before) EXPECT_FALSE(driver_.Has(row.id));
  EXPECT_NE(pools_->Get(alice_, "p")->error.find("exit code 9"), std::string::npos);
  Later(10'000);
  Fill();
  EXPECT_EQ(pools_->Get(alice_, "p")->ready, 2);
  EXPECT_EQ(pools_->Get(alice_, "p")->error, "");
}

TEST_F(PoolsTest, counts_against_the_quota) {
  ASSERT_TRUE(store_->Write([](store::Rows& rows) {
    return rows.PutTenant({.id = "alice", .quota = {.sandboxes = 2}});
  }));
  EXPECT_EQ(CodeOf(pools_->Put(alice_, "p", Of(3))), "control.quota");
  Put(Of(2));
  EXPECT_EQ(CodeOf(sandboxes_->Create(alice_, {.shape = "s-1vcpu-256mb"})), "control.quota");
  // What waits makes no place for itself twice.
  PoolRequest other = Of(2);
  other.definition.warm.reset();
  EXPECT_EQ(Put(other).ready, 2);
}

TEST_F(PoolsTest, empties_a_pool_that_nobody_uses_and_fills_it_when_somebody_does) {
  PoolRequest request = Of(2);
  request.idle_seconds = 100;
  Put(request);
  Later(99'000);
  Fill();
  EXPECT_EQ(Waiting().size(), 2U);
  WallClockJumps(1'000'000);
  Fill();
  EXPECT_EQ(Waiting().size(), 2U);
  Later(2000);
  Fill();
  EXPECT_TRUE(Waiting().empty());
  EXPECT_TRUE(driver_.machines.empty());
  EXPECT_EQ(Take(alice_)->was_ready, false);
  Fill();
  EXPECT_EQ(Waiting().size(), 2U);
}

TEST_F(PoolsTest, what_waits_outlives_a_restart) {
  Put(Of(2));
  const auto before = Waiting();
  Again();
  Fill();
  EXPECT_EQ(warmed_, 2);
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, true);
  EXPECT_TRUE(made->sandbox.id == before[0].id || made->sandbox.id == before[1].id);
}

TEST_F(PoolsTest, what_was_being_made_when_the_service_was_killed_is_gone) {
  Put(Of(1));
  // As a kill leaves it: a row that is not running yet, with a machine.
  Sandbox half = Waiting().at(0);
  const std::string whole = half.id;
  half.id = "sb-half";
  half.name = "half";
  half.state = SandboxState::kCreating;
  ASSERT_TRUE(store_->Write([&](store::Rows& rows) { return rows.InsertSandbox(half); }));
  ASSERT_TRUE(driver_.Create({.id = "sb-half", .image = "abc"}));
  Again();
  Fill();
  EXPECT_FALSE(driver_.Has("sb-half"));
  EXPECT_TRUE(driver_.Has(whole));
  EXPECT_EQ(pools_->Get(alice_, "p")->ready, 1);
}

TEST_F(PoolsTest, what_waits_of_a_pool_that_is_gone_is_destroyed_and_what_was_taken_is_not) {
  Put(Of(2));
  const auto taken = Take(alice_);
  ASSERT_TRUE(taken);
  ASSERT_TRUE(pools_->Delete(alice_, "p"));
  EXPECT_EQ(CodeOf(Take(alice_)), "control.not_found");
  Fill();
  EXPECT_TRUE(Waiting().empty());
  EXPECT_EQ(driver_.machines.size(), 1U);
  EXPECT_TRUE(driver_.Has(taken->sandbox.id));
}

TEST_F(PoolsTest, a_request_that_comes_twice_takes_one) {
  Put(Of(2));
  const Repeatable key{.key = "k", .fingerprint = "f"};
  const auto first = sandboxes_->Create(alice_, {.pool = "p"}, key);
  const auto second = sandboxes_->Create(alice_, {.pool = "p"}, key);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->sandbox.id, second->sandbox.id);
  EXPECT_EQ(Waiting().size(), 1U);
}

TEST_F(PoolsTest, finds_what_was_taken_by_its_name) {
  Put(Of(2));
  const auto made = sandboxes_->FindOrCreate(alice_, {.name = "mine", .pool = "p"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->is_new);
  const auto found = sandboxes_->FindOrCreate(alice_, {.name = "mine", .pool = "p"});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->is_new);
  EXPECT_EQ(found->made.sandbox.id, made->made.sandbox.id);
  EXPECT_EQ(CodeOf(Take(alice_, "mine")), "control.name_taken");
  EXPECT_EQ(Waiting().size(), 1U);
}

TEST_F(PoolsTest, what_is_taken_gets_its_time_and_its_networks_then) {
  ASSERT_TRUE(store_->Write([](store::Rows& rows) {
    return rows.InsertNetwork({.id = "net-1", .tenant = "alice", .name = "lab"});
  }));
  PoolRequest request = Of(1);
  request.definition.sandbox.networks = {"lab"};
  request.definition.sandbox.labels = {{"from", "pool"}};
  request.definition.sandbox.delete_after_seconds = 50;
  Put(request);
  const Sandbox waiting = Waiting().at(0);
  EXPECT_TRUE(driver_.machines.at(waiting.id).spec.shared_networks.empty());
  Later(100'000);
  TendFor(2);
  ASSERT_TRUE(driver_.Has(waiting.id));
  const auto made = sandboxes_->Create(alice_, {.labels = {{"of", "me"}}, .pool = "p"});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, true);
  EXPECT_EQ(driver_.machines.at(waiting.id).spec.shared_networks, std::set<std::string>{"net-1"});
  EXPECT_EQ(made->sandbox.labels,
            (std::map<std::string, std::string>{{"from", "pool"}, {"of", "me"}}));
  EXPECT_EQ(made->sandbox.delete_at, now_ + 50'000);
}

TEST_F(PoolsTest, warms_one_and_copies_the_others_where_a_copy_keeps_memory) {
  driver_.copies_memory = true;
  std::mutex mutex;
  std::vector<std::string> did;
  driver_.before = [&](const std::string& operation, const std::string& id) -> Result<void> {
    const std::lock_guard lock(mutex);
    if (operation == "fork") did.push_back("fork of " + id);
    if (operation == "pause") did.push_back("pause of " + id);
    return {};
  };
  EXPECT_EQ(Put(Of(3)).ready, 3);
  EXPECT_EQ(warmed_, 1);
  std::string parent;
  for (const auto& [id, entry] : driver_.machines) {
    if (entry.machine.state == machine::State::kPausedInMemory) parent = id;
  }
  const std::string fork = "fork of " + parent;
  EXPECT_EQ(did, (std::vector<std::string>{"pause of " + parent, fork, fork, fork}));
  const auto made = Take(alice_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->was_ready, true);
  EXPECT_EQ(made->sandbox.warm_process, "warm of " + parent);
  EXPECT_FALSE(made->sandbox.forked_from);
  // One for which none is ready is copied as well.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Take(alice_));
  EXPECT_EQ(warmed_, 1);
  Again();
  Fill();
  EXPECT_EQ(warmed_, 1);
  EXPECT_EQ(Waiting().size(), 3U);
  EXPECT_EQ(CodeOf(sandboxes_->Resume(alice_, parent)), "control.not_found");
  EXPECT_EQ(CodeOf(sandboxes_->Fork(alice_, parent, {})), "control.not_found");
  // Without it nothing waits in a pool that is gone.
  ASSERT_TRUE(pools_->Delete(alice_, "p"));
  Fill();
  EXPECT_FALSE(driver_.Has(parent));
}

TEST_F(PoolsTest, makes_another_parent_of_an_image_that_has_been_replaced) {
  driver_.copies_memory = true;
  Put(Of(1));
  options_.catalogue = [] {
    return std::vector<RootImage>{{.name = "devbox:1", .description = {}, .image = "newer"}};
  };
  Again();
  EXPECT_EQ(Take(alice_)->was_ready, false);
  Fill();
  Fill();
  EXPECT_EQ(warmed_, 3);
  int parents = 0;
  for (const auto& [id, entry] : driver_.machines) {
    if (entry.machine.state == machine::State::kPausedInMemory) ++parents;
  }
  EXPECT_EQ(parents, 1);
}

TEST_F(PoolsTest, refuses_what_is_no_definition) {
  const auto refusal = [&](PoolRequest request) {
    const auto put = pools_->Put(alice_, "p", request);
    return put ? "none" : std::string(put.error().code.name) + " " + put.error().details;
  };
  EXPECT_EQ(refusal(Of(0)), "control.bad_pool size");
  PoolRequest request = Of(1);
  request.definition.sandbox.shape = "huge";
  EXPECT_EQ(refusal(request), "control.unknown_shape sandbox.shape");
  request = Of(1);
  request.definition.warm->timeout_seconds = 601;
  EXPECT_EQ(refusal(request), "control.bad_pool warm.timeout_seconds");
  request = Of(1);
  request.definition.warm->ready = "two\nlines";
  EXPECT_EQ(refusal(request), "control.bad_pool warm.ready");
  EXPECT_TRUE(pools_->List(alice_)->empty());
}

TEST(PoolDefinition, reads_back_what_it_wrote) {
  PoolDefinition definition;
  definition.sandbox = {
      .shape = "s", .egress = {"*"}, .envs = {{"A", "ä\n"}}, .auto_pause_seconds = 60};
  definition.warm = Warm{.command = "python3", .args = {"-c", "\"x\""}, .ready = "r"};
  const std::string text = Write(definition);
  const auto back = ReadPoolDefinition(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(Write(*back), text);
  EXPECT_EQ(back->sandbox.envs, definition.sandbox.envs);
  EXPECT_EQ(back->warm, definition.warm);
  EXPECT_EQ(ReadPoolDefinition("{}").error().code.name, "store.failed");
}

}  // namespace
}  // namespace caisson::control
