// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "errors/store.h"
#include "store/sqlite/database.h"

namespace caisson::store::sqlite {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    std::string pattern = ::testing::TempDir() + "caisson-store-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/store.db";
    store_ = Open(path_).value();
    EXPECT_TRUE(store_->Write([](Rows& rows) { return rows.PutTenant({.id = "alice"}); }));
    EXPECT_TRUE(store_->Write([](Rows& rows) { return rows.PutTenant({.id = "bob"}); }));
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  static Sandbox Make(const std::string& id, const std::string& name) {
    Sandbox sandbox;
    sandbox.id = id;
    sandbox.tenant = "alice";
    sandbox.name = name;
    sandbox.host = "here";
    return sandbox;
  }
  Result<void> Insert(const Sandbox& sandbox) {
    return store_->Write([&](Rows& rows) { return rows.InsertSandbox(sandbox); });
  }
  Sandbox Find(const std::string& id) {
    return store_->Read([&](Rows& rows) { return rows.FindSandbox(id); }).value().value();
  }
  std::vector<std::string> Ids(const SandboxFilter& filter) {
    auto found = store_->Read([&](Rows& rows) { return rows.Sandboxes(filter); }).value();
    std::vector<std::string> ids;
    for (const Sandbox& row : found) ids.push_back(row.id);
    return ids;
  }

  std::string directory_;
  std::string path_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, KeepsEveryFieldOfASandbox) {
  Sandbox sandbox = Make("sb-1", "quick-fox");
  sandbox.egress = {"*.example.org", "10.0.0.0/8:443"};
  sandbox.envs = {{"KEY", "value with \"quotes\", a\nline and \x01"}, {"EMPTY", ""}};
  sandbox.labels = {{"team", "red"}};
  sandbox.cpus = 0.5;
  sandbox.spawn_ms = 12.25;
  sandbox.auto_pause_seconds = 60;
  sandbox.forked_from = "sb-0";
  sandbox.running_at = 1'700'000'000'123;
  ASSERT_TRUE(Insert(sandbox));
  const Sandbox found = Find("sb-1");
  EXPECT_EQ(found.egress, sandbox.egress);
  EXPECT_EQ(found.envs, sandbox.envs);
  EXPECT_EQ(found.labels, sandbox.labels);
  EXPECT_EQ(found.cpus, 0.5);
  EXPECT_EQ(found.spawn_ms, 12.25);
  EXPECT_EQ(found.auto_pause_seconds, 60);
  EXPECT_EQ(found.forked_from, "sb-0");
  EXPECT_EQ(found.running_at, sandbox.running_at);
  EXPECT_FALSE(found.paused_at);
}

TEST_F(StoreTest, IsKeptForItsOwnerAlone) {
  struct stat info{};
  for (const char* suffix : {"", "-wal", "-shm"}) {
    ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(StoreTest, FreesANameWhenItsSandboxHasEnded) {
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  auto refused = Insert(Make("sb-2", "box"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errors::kStoreConflict);
  Sandbox others = Make("sb-3", "box");
  others.tenant = "bob";
  EXPECT_TRUE(Insert(others));
  Sandbox first = Find("sb-1");
  first.state = SandboxState::kDestroyed;
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.UpdateSandbox(first); }));
  EXPECT_TRUE(Insert(Make("sb-2", "box")));
}

TEST_F(StoreTest, RefusesAnUpdateOfWhatHasChanged) {
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  Sandbox one = Find("sb-1");
  Sandbox two = one;
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.UpdateSandbox(one); }));
  auto late = store_->Write([&](Rows& rows) { return rows.UpdateSandbox(two); });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errors::kStoreStale);
  EXPECT_EQ(two.revision, 0);
}

TEST_F(StoreTest, AnUpdateLeavesWhatASandboxHasForItsLife) {
  Sandbox sandbox = Make("sb-1", "box");
  sandbox.created_by = "key-1";
  sandbox.created_at = 7;
  ASSERT_TRUE(Insert(sandbox));
  sandbox.tenant = "bob";
  sandbox.host = "there";
  sandbox.created_by = "key-2";
  sandbox.created_at = 8;
  sandbox.name = "other";
  sandbox.state = SandboxState::kRunning;
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.UpdateSandbox(sandbox); }));
  const Sandbox found = Find("sb-1");
  EXPECT_EQ(found.tenant, "alice");
  EXPECT_EQ(found.host, "here");
  EXPECT_EQ(found.created_by, "key-1");
  EXPECT_EQ(found.created_at, 7);
  EXPECT_EQ(found.name, "other");
  EXPECT_EQ(found.state, SandboxState::kRunning);
}

TEST_F(StoreTest, UndoesATransactionThatFails) {
  auto outcome = store_->Write([&](Rows& rows) -> Result<void> {
    CAISSON_TRY(rows.InsertSandbox(Make("sb-1", "box")));
    return rows.InsertSandbox(Make("sb-1", "other"));
  });
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(Ids({}).empty());
}

TEST_F(StoreTest, ListsRunningOnesFirstAndHidesDestroyedOnes) {
  int at = 0;
  auto add = [&](const std::string& id, SandboxState state) {
    Sandbox sandbox = Make(id, id);
    sandbox.state = state;
    sandbox.created_at = ++at;
    ASSERT_TRUE(Insert(sandbox));
  };
  add("paused", SandboxState::kPaused);
  add("destroyed", SandboxState::kDestroyed);
  add("running", SandboxState::kRunning);
  add("failed", SandboxState::kFailed);
  EXPECT_EQ(Ids({}), (std::vector<std::string>{"running", "paused", "failed"}));
  EXPECT_EQ(Ids({.states = {SandboxState::kDestroyed}}), (std::vector<std::string>{"destroyed"}));
  EXPECT_EQ(Ids({.limit = 1, .offset = 1}), (std::vector<std::string>{"paused"}));
  EXPECT_EQ(Ids({.tenant = "bob"}), (std::vector<std::string>{}));
  const auto usage = store_->Read([](Rows& rows) { return rows.UsageByTenant("here"); }).value();
  EXPECT_EQ(usage.at("alice").sandboxes, 2);
}

TEST_F(StoreTest, FindsByLabels) {
  Sandbox sandbox = Make("sb-1", "one");
  sandbox.labels = {{"a.b", "1"}, {"team", "red"}};
  ASSERT_TRUE(Insert(sandbox));
  ASSERT_TRUE(Insert(Make("sb-2", "two")));
  EXPECT_EQ(Ids({.labels = {{"a.b", "1"}}}), (std::vector<std::string>{"sb-1"}));
  EXPECT_EQ(Ids({.labels = {{"a.b", "1"}, {"team", "blue"}}}), (std::vector<std::string>{}));
}

TEST_F(StoreTest, PurgesOldTombstonesWithTheirTokens) {
  Sandbox sandbox = Make("sb-1", "one");
  sandbox.state = SandboxState::kDestroyed;
  sandbox.destroyed_at = 1000;
  ASSERT_TRUE(Insert(sandbox));
  ASSERT_TRUE(
      store_->Write([](Rows& rows) { return rows.PutToken({.sandbox = "sb-1", .hash = "h"}); }));
  auto purge = [&](Milliseconds before) {
    return store_->Write([&](Rows& rows) { return rows.PurgeSandboxes("here", before); }).value();
  };
  EXPECT_EQ(purge(1000), 0);
  EXPECT_EQ(purge(1001), 1);
  EXPECT_FALSE(store_->Read([](Rows& rows) { return rows.FindTokenByHash("h"); }).value());
}

TEST_F(StoreTest, LetsReadersSeeAnotherProcessWrite) {
  auto other = Open(path_).value();
  ASSERT_TRUE(other->Write([](Rows& rows) {
    return rows.InsertKey({.id = "k", .tenant = "alice", .hash = "abc", .is_admin = true});
  }));
  auto key = store_->Read([](Rows& rows) { return rows.FindKeyByHash("abc"); }).value();
  ASSERT_TRUE(key);
  EXPECT_TRUE(key->is_admin);
  EXPECT_TRUE(store_->Write([](Rows& rows) { return rows.RevokeKey("k", 5); }).value());
  EXPECT_FALSE(store_->Write([](Rows& rows) { return rows.RevokeKey("k", 6); }).value());
}

TEST_F(StoreTest, ManyWritersLoseNothing) {
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  auto count_up = [&] {
    auto own = Open(path_).value();
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(own->Write([](Rows& rows) -> Result<void> {
        CAISSON_ASSIGN(auto row, rows.FindSandbox("sb-1"));
        ++row->bytes_out;
        return rows.UpdateSandbox(*row);
      }));
    }
  };
  std::thread one(count_up);
  std::thread two(count_up);
  one.join();
  two.join();
  EXPECT_EQ(Find("sb-1").bytes_out, 100);
}

// To open a connection must not drop the locks of those that are open.
TEST_F(StoreTest, ReadersThatComeDuringWritesDisturbNobody) {
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        auto read = store_->Read([](Rows& rows) { return rows.FindSandbox("sb-1"); });
        ASSERT_TRUE(read) << read.error().message;
        auto own = Open(path_);
        ASSERT_TRUE(own) << own.error().message;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    auto written = store_->Write([](Rows& rows) -> Result<void> {
      CAISSON_ASSIGN(auto row, rows.FindSandbox("sb-1"));
      ++row->bytes_out;
      return rows.UpdateSandbox(*row);
    });
    EXPECT_TRUE(written) << written.error().message;
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(StoreTest, GivesEventsOfOneTenantInOrder) {
  for (const char* tenant : {"alice", "bob", "alice"}) {
    ASSERT_TRUE(store_->Write([&](Rows& rows) {
      return rows.AppendEvent({.tenant = tenant, .type = "sandbox.running", .data = "{}"});
    }));
  }
  auto events = store_->Read([](Rows& rows) { return rows.EventsAfter("alice", 0, 10); }).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_LT(events[0].seq, events[1].seq);
}

TEST_F(StoreTest, keeps_what_waits_in_a_pool_from_those_who_do_not_ask_for_it) {
  Sandbox waiting = Make("sb-w", "waiting");
  waiting.pool = "p";
  waiting.pool_id = "pool-1";
  waiting.place = PoolPlace::kWaiting;
  ASSERT_TRUE(Insert(waiting));
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  EXPECT_EQ(Ids({}), std::vector<std::string>{"sb-1"});
  EXPECT_EQ(Ids({.with_pooled = true}).size(), 2U);
  EXPECT_EQ(Ids({.with_pooled = true, .pool_id = "pool-1"}), std::vector<std::string>{"sb-w"});
  EXPECT_EQ(Ids({.only_pooled = true}), std::vector<std::string>{"sb-w"});
  Sandbox row = Find("sb-w");
  EXPECT_EQ(row.place, PoolPlace::kWaiting);
  row.place = PoolPlace::kNone;
  row.created_by = "key-2";
  row.created_at = 5;
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.HandOver(row); }));
  EXPECT_EQ(Find("sb-w").created_by, "key-2");
  EXPECT_EQ(Find("sb-w").created_at, 5);
  EXPECT_EQ(Ids({}).size(), 2U);
  // Whoever read it before comes too late.
  waiting.place = PoolPlace::kNone;
  const auto late = store_->Write([&](Rows& rows) { return rows.HandOver(waiting); });
  EXPECT_EQ(late.error().code, errors::kStoreStale);
}

TEST_F(StoreTest, keeps_pools_by_tenant_and_name) {
  Pool pool{.id = "pool-1", .tenant = "alice", .name = "p", .definition = "{}", .size = 2};
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.PutPool(pool); }));
  pool = {.id = "pool-2", .tenant = "bob", .name = "p", .definition = "{}"};
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.PutPool(pool); }));
  pool = {.id = "pool-3", .tenant = "alice", .name = "p", .definition = "{\"a\":1}"};
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.PutPool(pool); }));
  ASSERT_TRUE(store_->Write([&](Rows& rows) -> Result<void> {
    EXPECT_EQ(rows.FindPool("alice", "p").value()->id, "pool-3");
    EXPECT_EQ(rows.Pools("alice")->size(), 1U);
    EXPECT_EQ(rows.Pools(std::nullopt)->size(), 2U);
    EXPECT_FALSE(*rows.CountPoolUse("pool-1", true, 7));  // replaced
    EXPECT_TRUE(*rows.CountPoolUse("pool-3", true, 7));
    EXPECT_TRUE(*rows.CountPoolUse("pool-3", false, 8));
    const Pool used = rows.FindPool("alice", "p").value().value();
    EXPECT_EQ(used.handed_out, 1);
    EXPECT_EQ(used.missed, 1);
    EXPECT_EQ(used.used_at, 8);
    EXPECT_TRUE(*rows.DeletePool("alice", "p"));
    EXPECT_FALSE(*rows.DeletePool("alice", "p"));
    EXPECT_EQ(rows.Pools(std::nullopt)->size(), 1U);
    return {};
  }));
}

TEST_F(StoreTest, a_name_is_free_as_soon_as_its_sandbox_is_being_destroyed) {
  ASSERT_TRUE(Insert(Make("sb-1", "box")));
  EXPECT_FALSE(Insert(Make("sb-2", "box")));
  Sandbox going = Find("sb-1");
  going.state = SandboxState::kDestroying;
  ASSERT_TRUE(store_->Write([&](Rows& rows) { return rows.UpdateSandbox(going); }));
  EXPECT_TRUE(Insert(Make("sb-2", "box")));
  const auto found =
      store_->Read([&](Rows& rows) { return rows.FindSandboxByName("alice", "box"); });
  EXPECT_EQ(found->value().id, "sb-2");
}

TEST_F(StoreTest, TakesAFileFromBeforeThereWereDriversAndLeavesPoliciesAsTheyAre) {
  const std::vector<std::vector<std::string>> policies = {
      {}, {"*"}, {"240.0.0.0/4"}, {"93.184.216.34:443", "198.51.100.0/24", "93.184.216.34:443"}};
  for (std::size_t i = 0; i < policies.size(); ++i) {
    Sandbox sandbox = Make("sb-" + std::to_string(i), "quick-fox-" + std::to_string(i));
    sandbox.driver = "other";
    sandbox.saved_mib = 7;
    sandbox.egress = policies[i];
    ASSERT_TRUE(Insert(sandbox));
  }
  store_.reset();
  ASSERT_TRUE(Database::Open(path_).value()->Execute(
      "DROP INDEX pooled_sandboxes; DROP TABLE pools; ALTER TABLE sandboxes DROP COLUMN pool;"
      "ALTER TABLE sandboxes DROP COLUMN pool_id; ALTER TABLE sandboxes DROP COLUMN place;"
      "ALTER TABLE sandboxes DROP COLUMN warm_process;"
      "ALTER TABLE sandboxes DROP COLUMN driver; ALTER TABLE sandboxes DROP COLUMN ingress_wakes;"
      "ALTER TABLE sandboxes DROP COLUMN saved_mib;"
      "ALTER TABLE templates DROP COLUMN driver; PRAGMA user_version = 1"));
  for (int opening = 0; opening < 2; ++opening) {  // by the upgrade, and afterwards
    store_ = Open(path_).value();
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const Sandbox found = Find("sb-" + std::to_string(i));
      EXPECT_EQ(found.driver, "jail");
      EXPECT_FALSE(found.ingress_wakes);
      EXPECT_EQ(found.saved_mib, 0);
      EXPECT_EQ(found.egress, policies[i]);
      EXPECT_EQ(found.name, "quick-fox-" + std::to_string(i));
    }
    store_.reset();
  }
  store_ = Open(path_).value();
}

TEST_F(StoreTest, RefusesAFileOfANewerProgram) {
  const std::string path = directory_ + "/newer.db";
  ASSERT_TRUE(Database::Open(path).value()->Execute("PRAGMA user_version = 999"));
  auto opened = Open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errors::kStoreVersion);
}

}  // namespace
}  // namespace caisson::store::sqlite
