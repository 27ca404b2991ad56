// SPDX-License-Identifier: Apache-2.0
// The driver through the lives of machines, over the double: helper, templates, jailer, API and the
// way to the agent are ours and real, what they stand on is not.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "machine/firecracker/machines/test_firecracker.h"

namespace caisson::machine::firecracker {
namespace {

TEST_F(FirecrackerMachines, GoOnFromOneTemplateEachAsItself) {
  Start();
  const Capabilities capabilities = driver_->capabilities();
  EXPECT_EQ(capabilities.driver, "firecracker");
  EXPECT_EQ(capabilities.isolation_class, "hardware-virtualized");
  EXPECT_FALSE(capabilities.emulated);
  EXPECT_EQ(capabilities.fork, Extent::kFull);
  EXPECT_FALSE(capabilities.network) << "this helper has none";
  for (const char* id : {"one", "two"}) {
    const auto made = driver_->Create(Spec(id));
    ASSERT_TRUE(made) << made.error().message << doubles().Requests();
    EXPECT_EQ(Say(id, {"identity"}), id);
    EXPECT_EQ(Say(id, {"renewals"}), "1");
    EXPECT_EQ(Say(id, {"frozen"}), "no");
  }
  EXPECT_EQ(Say("one", {"remember", "mine"}), "");
  EXPECT_EQ(Say("two", {"recall"}), "");
  EXPECT_EQ(Say("one", {"recall"}), "mine");
  EXPECT_EQ(doubles().Count("PUT /snapshot/load"), 2U);
  EXPECT_LE(doubles().Count("InstanceStart"), 1U) << "the template alone boots";
  EXPECT_EQ(doubles().Count(" -> "), 0U) << doubles().Requests();
  for (const char* id : {"one", "two"}) EXPECT_EQ(CodeOf(driver_->Destroy(id)), "fine");
  EXPECT_EQ(TracesOf(*helper_), std::vector<std::string>{});
}

TEST_F(FirecrackerMachines, KeepTheirMemoryThroughPausesAndTheHelpersDeath) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one", {"remember", "kept"}), "");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  EXPECT_EQ(StateOf("one"), State::kPausedInMemory);
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Say("one", {"recall"}), "kept");
  EXPECT_EQ(Say("one", {"renewals"}), "1") << "its stream is the one that it had";
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Say("one", {"recall"}), "kept");
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  EXPECT_EQ(StateOf("one"), State::kPausedOnDisk);
  EXPECT_EQ(driver_->ReadStats("one").value().memory_bytes, 0U);
  helper_->Kill();
  helper_->Start();
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("one", {"recall"}), "kept");
  EXPECT_EQ(Say("one", {"identity"}), "one");
  EXPECT_EQ(Say("one", {"renewals"}), "2");
}

TEST_F(FirecrackerMachines, AForkHasItsParentsMemoryAndALifeOfItsOwn) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("parent")));
  EXPECT_EQ(Say("parent", {"remember", "shared"}), "");
  EXPECT_EQ(Say("parent", {"write", "on disk"}), "");
  EXPECT_EQ(CodeOf(driver_->Fork("parent", Spec("child"))), "machine.wrong_state");
  ASSERT_TRUE(driver_->Pause("parent", Level::kMemory));
  MachineSpec larger = Spec("child");
  larger.disk_bytes *= 2;
  const auto child = driver_->Fork("parent", larger);
  ASSERT_TRUE(child) << child.error().message << doubles().Requests();
  EXPECT_EQ(Say("child", {"recall"}), "shared");
  EXPECT_EQ(Say("child", {"read"}), "on disk");
  EXPECT_EQ(Say("child", {"identity"}), "child");
  EXPECT_EQ(Say("child", {"remember", "its own"}), "");
  EXPECT_EQ(Say("child", {"write", "its own"}), "");
  // The save has reset the parent's streams: it is greeted on a new one.
  const auto resumed = driver_->Resume("parent");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("parent", {"recall"}), "shared");
  EXPECT_EQ(Say("parent", {"read"}), "on disk");
  EXPECT_EQ(Say("parent", {"frozen"}), "no");
  EXPECT_EQ(doubles().Count(" -> "), 0U) << doubles().Requests();
}

TEST_F(FirecrackerMachines, ASnapshotOfARunningMachineIsRestoredAsOftenAsOneLikes) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one", {"remember", "then"}), "");
  const auto kept = driver_->TakeSnapshot("one", "kept");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(Say("one", {"recall"}), "then") << "it goes on";
  EXPECT_EQ(Say("one", {"remember", "later"}), "");
  ASSERT_TRUE(driver_->Destroy("one"));
  for (const char* id : {"two", "three"}) {
    const auto restored = driver_->Restore("kept", Spec(id));
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(Say(id, {"recall"}), "then");
    EXPECT_EQ(Say(id, {"identity"}), id);
  }
  EXPECT_TRUE(driver_->RemoveSnapshot("kept"));
}

TEST_F(FirecrackerMachines, ADiskGrowsWhileAMachineRunsAndWhileItIsPaused) {
  Start();
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(CodeOf(driver_->Resize("one", 96ull << 20)), "fine");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  EXPECT_EQ(CodeOf(driver_->Resize("one", 128ull << 20)), "fine");
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_GE(doubles().Count("PATCH /drives/disk"), 2U);
  EXPECT_EQ(driver_->List().value().at(0).disk_bytes, 128ull << 20);
  EXPECT_EQ(doubles().Count(" -> "), 0U) << doubles().Requests();
}

}  // namespace
}  // namespace caisson::machine::firecracker
