// SPDX-License-Identifier: Apache-2.0
// The parts of the control plane that need no driver.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <set>

#include "control/admission.h"
#include "control/identity.h"
#include "control/names.h"
#include "control/secret.h"
#include "control/states.h"
#include "errors/control.h"
#include "store/sqlite/store.h"

namespace caisson::control {
namespace {

TEST(States, TerminalOnesLeadNowhereButToDestroyed) {
  for (int event = 0; event <= static_cast<int>(SandboxEvent::kDeleted); ++event) {
    for (const SandboxState state : {SandboxState::kDestroyed, SandboxState::kFailed}) {
      const auto next = Next(state, static_cast<SandboxEvent>(event));
      EXPECT_TRUE(!next || *next == SandboxState::kDestroyed);
    }
  }
}

TEST(States, EveryLiveOneCanBeDeleted) {
  for (int state = 0; state <= static_cast<int>(SandboxState::kFailed); ++state) {
    EXPECT_TRUE(Next(static_cast<SandboxState>(state), SandboxEvent::kDelete)) << state;
  }
}

TEST(States, EveryEventHasItsName) {
  EXPECT_EQ(ToText(SandboxEvent::kBooted), "booted");
  EXPECT_EQ(ToText(SandboxEvent::kDeleted), "deleted");
}

TEST(Names, AreHostNames) {
  EXPECT_TRUE(IsName("a"));
  EXPECT_TRUE(IsName("quiet-otter-4f2"));
  for (const char* bad : {"", "-a", "a-", "A", "a_b", "a.b", "\xc3\xa4"}) EXPECT_FALSE(IsName(bad));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(IsName(MakeName()));
}

TEST(Secrets, AreNotTheSameTwice) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = MakeSecret(kKeyPrefix);
    EXPECT_EQ(secret.size(), 47u);
    EXPECT_TRUE(seen.insert(secret).second);
  }
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_LT(MakeUlid(1'700'000'000'000), MakeUlid(1'700'000'000'001));
}

class AdmissionTest : public ::testing::Test {
 protected:
  std::string_view Ask(const std::string& tenant, std::int64_t memory) {
    auto admitted = Admit(tenant, {.sandboxes = 1, .memory_mib = memory}, quota_, in_use_, tenants_,
                          capacity_, {.free_memory_mib = 100, .free_disk_mib = 100});
    return admitted ? "admitted" : admitted.error().code.name;
  }
  store::Quota quota_;
  std::map<std::string, store::Usage> in_use_;
  std::size_t tenants_ = 1;
  HostCapacity capacity_{.memory_mib = 1000};
};

TEST_F(AdmissionTest, OneTenantMayTakeTheWholeHost) {
  in_use_["a"] = {.sandboxes = 1, .memory_mib = 900};
  EXPECT_EQ(Ask("a", 100), "admitted");
  EXPECT_EQ(Ask("a", 101), "control.full");
}

TEST_F(AdmissionTest, OneOfSeveralLeavesAShare) {
  tenants_ = 4;
  in_use_["a"] = {.sandboxes = 1, .memory_mib = 700};
  EXPECT_EQ(Ask("a", 50), "admitted");
  EXPECT_EQ(Ask("a", 51), "control.full");
  EXPECT_EQ(Ask("b", 250), "admitted");
}

TEST_F(AdmissionTest, KeepsTheQuotaBeforeTheHost) {
  quota_.memory_mib = 10;
  EXPECT_EQ(Ask("a", 10), "admitted");
  EXPECT_EQ(Ask("a", 2000), "control.quota");
}

TEST_F(AdmissionTest, KeepsWhatTheHostNeedsNow) {
  capacity_.least_free_memory_mib = 101;
  EXPECT_EQ(Ask("a", 1), "control.full");
}

TEST(Identity, KeysAreKeptAsHashesAndCanBeRevoked) {
  std::string pattern = ::testing::TempDir() + "caisson-identity-XXXXXX";
  const std::string directory = mkdtemp(pattern.data());
  auto store = store::sqlite::Open(directory + "/store.db").value();
  const auto made = CreateKey(*store, "alice", "laptop", true, 1).value();
  EXPECT_EQ(made.key.hash, HashOf(made.secret));
  const auto caller = Authenticate(*store, made.secret);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->tenant, "alice");
  EXPECT_TRUE(caller->is_admin);
  EXPECT_FALSE(Authenticate(*store, ""));
  EXPECT_FALSE(Authenticate(*store, made.secret + "x"));
  EXPECT_FALSE(Authenticate(*store, made.key.hash));
  EXPECT_FALSE(CreateKey(*store, "Not A Name", "", false, 1));
  ASSERT_TRUE(store->Write([&](store::Rows& rows) { return rows.RevokeKey(made.key.id, 2); }));
  EXPECT_EQ(Authenticate(*store, made.secret).error().code, errors::kControlUnauthenticated);

  ASSERT_TRUE(store->Write([&](store::Rows& rows) {
    return rows.InsertSandbox({.id = "sb-1", .tenant = "alice", .name = "box", .host = "here"});
  }));
  EXPECT_EQ(RotateToken(*store, "sb-1", 5).error().code, errors::kControlNoToken);
  const auto token = CreateToken(*store, "sb-1", 5).value();
  EXPECT_EQ(CreateToken(*store, "sb-1", 5).error().code, errors::kControlTokenExists);
  EXPECT_EQ(Authenticate(*store, token.secret)->sandbox, "sb-1");
  const auto rotated = RotateToken(*store, "sb-1", 6).value();
  EXPECT_FALSE(Authenticate(*store, token.secret));
  EXPECT_TRUE(Authenticate(*store, rotated.secret));
  EXPECT_EQ(rotated.token.created_at, 5);
  store.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace caisson::control
