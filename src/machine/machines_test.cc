// SPDX-License-Identifier: Apache-2.0
// That what is slow about one machine, or one snapshot, is nobody else's affair.
#include "machine/machines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "errors/machine.h"
#include "machine/test_driver.h"

namespace caisson::machine {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kMe = 1000;
constexpr uid_t kOther = 1001;

class MachinesTest : public testing::Test {
 protected:
  MachinesTest() { Reopen(); }
  void Reopen() {
    machines_.reset();
    auto opened = Machines::Open(std::make_unique<TestDriver>(barriers_, store_), NoNetworks());
    EXPECT_TRUE(opened) << opened.error().message;
    machines_ = *std::move(opened);
  }
  MachineSpec Spec(const std::string& id) const {
    return {
        .id = id, .host_name = {}, .image = store_.image(), .network = egress::Policy::DenyAll()};
  }
  void Make(const std::string& id, uid_t owner = kMe) {
    const auto made = machines_->Create(owner, Spec(id));
    ASSERT_TRUE(made) << made.error().message;
  }
  std::map<std::string, State> States(uid_t caller = kMe) {
    std::map<std::string, State> states;
    const auto list = machines_->List(caller);
    for (const Machine& machine : *list) states[machine.id] = machine.state;
    return states;
  }
  // Begins something that waits at its barrier.
  template <typename What>
  auto Begin(const std::string& barrier, What what) {
    barriers_.Close(barrier);
    auto future = std::async(std::launch::async, what);
    barriers_.AwaitArrival(barrier);
    return future;
  }
  std::size_t SnapshotCount() { return machines_->ListSnapshots(kMe)->size(); }
  std::set<std::string> SnapshotFiles() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(store_.directory() + "/snapshots")) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  StoreOfOne store_;
  Barriers barriers_;
  std::unique_ptr<Machines> machines_;
};

TEST_F(MachinesTest, AListWaitsForNoMachine) {
  Make("a");
  Make("b");
  auto pausing = Begin("pause a", [&] { return machines_->Pause(kMe, "a", Level::kMemory); });
  auto making = Begin("make c", [&] { return machines_->Create(kMe, Spec("c")); });
  EXPECT_EQ(States(),
            (std::map<std::string, State>{{"a", State::kRunning}, {"b", State::kRunning}}));
  EXPECT_TRUE(machines_->Pause(kMe, "b", Level::kMemory));
  barriers_.Open("pause a");
  barriers_.Open("make c");
  EXPECT_TRUE(pausing.get());
  EXPECT_TRUE(making.get());
  EXPECT_EQ(States(), (std::map<std::string, State>{{"a", State::kPausedInMemory},
                                                    {"b", State::kPausedInMemory},
                                                    {"c", State::kRunning}}));
  EXPECT_TRUE(States(kOther).empty());
  EXPECT_TRUE(machines_->Destroy(kMe, "a"));
  EXPECT_EQ(States().size(), 2u);
}

TEST_F(MachinesTest, WhatABusyMachineIsToldAsIsWhatTheLastOperationLeft) {
  Make("a");
  ASSERT_TRUE(machines_->Pause(kMe, "a", Level::kMemory));
  ASSERT_TRUE(machines_->Resume(kMe, "a"));
  auto keeping = Begin("keep a", [&] { return machines_->TakeSnapshot(kMe, "a", "s"); });
  EXPECT_EQ(States().at("a"), State::kRunning);
  barriers_.Open("keep a");
  EXPECT_TRUE(keeping.get());
}

TEST_F(MachinesTest, FewMayWaitForOneThatIsBusy) {
  Make("a");
  auto pausing = Begin("pause a", [&] { return machines_->Pause(kMe, "a", Level::kMemory); });
  std::atomic<int> refused = 0;
  std::vector<std::jthread> callers;
  constexpr int kCallers = static_cast<int>(Machines::kMaxWaiting) + 20;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      const auto stats = machines_->ReadStats(kMe, "a");
      if (!stats && stats.error().code == errors::kMachineUnavailable) ++refused;
    });
  }
  // Those beyond what may wait come back though it is busy.
  for (int i = 0; i < 3000 && refused < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(refused, 20);
  const auto destroyed = machines_->Destroy(kMe, "a");
  ASSERT_FALSE(destroyed) << "one that is not destroyed must not be told to be gone";
  EXPECT_EQ(destroyed.error().code, errors::kMachineUnavailable);
  barriers_.Open("pause a");
  EXPECT_TRUE(pausing.get());
  callers.clear();
  EXPECT_EQ(refused, 20);
  EXPECT_TRUE(machines_->ReadStats(kMe, "a"));
}

TEST_F(MachinesTest, SnapshotsAreTakenAndRestoredBesideOneAnother) {
  Make("a");
  Make("b");
  ASSERT_TRUE(machines_->TakeSnapshot(kMe, "b", "old"));
  auto keeping = Begin("keep a", [&] { return machines_->TakeSnapshot(kMe, "a", "s"); });
  auto restoring = Begin("restore c", [&] { return machines_->Restore(kMe, "old", Spec("c")); });
  EXPECT_EQ(SnapshotCount(), 1u);
  EXPECT_TRUE(machines_->TakeSnapshot(kMe, "b", "t"));
  EXPECT_TRUE(machines_->Restore(kMe, "t", Spec("d")));
  EXPECT_TRUE(machines_->RemoveSnapshot(kMe, "t"));
  EXPECT_EQ(SnapshotCount(), 1u);
  barriers_.Open("keep a");
  barriers_.Open("restore c");
  EXPECT_TRUE(keeping.get());
  EXPECT_TRUE(restoring.get());
  EXPECT_EQ(SnapshotFiles(), (std::set<std::string>{"old", "s"}));
}

TEST_F(MachinesTest, ASnapshotIsThereWhenItIsWholeAndItsIdIsTakenBefore) {
  Make("a");
  Make("b");
  auto keeping = Begin("keep a", [&] { return machines_->TakeSnapshot(kMe, "a", "s"); });
  EXPECT_EQ(SnapshotCount(), 0u);
  EXPECT_FALSE(SnapshotFiles().contains("s"));
  for (const uid_t caller : {kMe, kOther}) {
    if (caller == kOther) Make("c", kOther);
    const auto twice = machines_->TakeSnapshot(caller, caller == kMe ? "b" : "c", "s");
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, errors::kMachineExists);
  }
  EXPECT_EQ(machines_->Restore(kMe, "s", Spec("d")).error().code, errors::kMachineUnknown);
  EXPECT_TRUE(machines_->RemoveSnapshot(kOther, "s"));
  barriers_.Open("keep a");
  EXPECT_TRUE(keeping.get());
  EXPECT_TRUE(machines_->Restore(kMe, "s", Spec("d")));
  EXPECT_EQ(machines_->Restore(kOther, "s", Spec("e")).error().code, errors::kMachineUnknown);
}

TEST_F(MachinesTest, ASnapshotThatIsBeingRestoredIsRemovedAfterwards) {
  Make("a");
  ASSERT_TRUE(machines_->TakeSnapshot(kMe, "a", "s"));
  auto restoring = Begin("restore c", [&] { return machines_->Restore(kMe, "s", Spec("c")); });
  auto removing =
      std::async(std::launch::async, [&] { return machines_->RemoveSnapshot(kMe, "s"); });
  EXPECT_EQ(removing.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  barriers_.Open("restore c");
  EXPECT_TRUE(restoring.get());
  EXPECT_TRUE(removing.get());
  EXPECT_TRUE(SnapshotFiles().empty());
  EXPECT_TRUE(machines_->TakeSnapshot(kMe, "a", "s")) << "its id is free again";
}

TEST_F(MachinesTest, ASnapshotThatWasNotFinishedLeavesNothing) {
  Make("a");
  const auto gone = machines_->TakeSnapshot(kMe, "nothing", "s");
  EXPECT_EQ(gone.error().code, errors::kMachineUnknown);
  fs::create_directories(store_.directory() + "/snapshots/.making-s");
  std::ofstream(store_.directory() + "/snapshots/.making-s/disk.img") << "half";
  const auto failed = machines_->TakeSnapshot(kMe, "a", "s");
  ASSERT_FALSE(failed) << "somebody else's draft";
  EXPECT_TRUE(SnapshotFiles().empty());
  ASSERT_TRUE(machines_->TakeSnapshot(kMe, "a", "kept"));
  // As a helper that was killed in between leaves it.
  fs::create_directories(store_.directory() + "/snapshots/.making-t");
  std::ofstream(store_.directory() + "/snapshots/.making-t/disk.img") << "half";
  Reopen();
  EXPECT_EQ(SnapshotFiles(), std::set<std::string>{"kept"});
  EXPECT_EQ(SnapshotCount(), 1u);
  EXPECT_TRUE(machines_->Restore(kMe, "kept", Spec("b")));
}

}  // namespace
}  // namespace caisson::machine
