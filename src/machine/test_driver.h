// SPDX-License-Identifier: Apache-2.0
// For tests: a driver without machines inside a helper, whose operations can be made to wait, and a
// store with one image.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "images/files.h"
#include "images/store.h"
#include "images/test_directory.h"
#include "images/tree.h"
#include "machine/local.h"

namespace caisson::machine {

class StoreOfOne {
 public:
  StoreOfOne() {
    auto store = images::Store::Open(directory_.path() + "/images");
    EXPECT_TRUE(store) << store.error().message;
    store_ = *std::move(store);
    auto building = store_->Begin({}, [] {});
    EXPECT_TRUE(building) << building.error().message;
    const std::string draft = building->path() + "/1";
    std::filesystem::create_directories(draft + "/root");
    EXPECT_TRUE(images::WriteFile(draft + "/root/file", "x"));
    const auto manifest = images::MakeManifest(draft + "/root", 0);
    EXPECT_TRUE(manifest);
    const auto image = store_->Publish(
        {.draft = draft, .name = "one", .manifest = *manifest, .info = json::Object{{"bytes", 1}}});
    EXPECT_TRUE(image) << image.error().message;
    if (image) image_ = image->id;
  }
  const images::Store& store() const { return *store_; }
  const std::string& image() const { return image_; }
  const std::string& directory() const { return directory_.path(); }

 private:
  images::TestDirectory directory_;
  std::optional<images::Store> store_;
  std::string image_;
};

// Where an operation of the name "keep b" waits from Close on until Open.
class Barriers {
 public:
  void Close(const std::string& name) {
    const std::lock_guard lock(mutex_);
    closed_.insert(name);
  }
  void Open(const std::string& name) {
    const std::lock_guard lock(mutex_);
    closed_.erase(name);
    changed_.notify_all();
  }
  void Pass(const std::string& name) {
    std::unique_lock lock(mutex_);
    arrived_.insert(name);
    changed_.notify_all();
    changed_.wait(lock, [&] { return !closed_.contains(name); });
    arrived_.erase(name);
  }
  void AwaitArrival(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_.contains(name); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> closed_, arrived_;
};

class TestMachine final : public LocalMachine {
 public:
  TestMachine(Barriers& barriers, uid_t owner, MachineSpec spec)
      : barriers_(barriers), owner_(owner), spec_(std::move(spec)) {}

  uid_t owner() const override { return owner_; }
  std::uint32_t network() const override { return 0; }
  Machine View() override {
    return {.id = spec_.id,
            .state = state_,
            .ip = {},
            .image = spec_.image,
            .disk_bytes = spec_.disk_bytes};
  }
  Result<void> Remove() override { return Passed("remove"); }
  Result<void> Pause(Level) override {
    CAISSON_TRY(Passed("pause"));
    state_ = State::kPausedInMemory;
    return {};
  }
  Result<void> Resume() override {
    CAISSON_TRY(Passed("resume"));
    state_ = State::kRunning;
    return {};
  }
  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child,
                                             Extent) override {
    CAISSON_TRY(Passed("fork"));
    return std::make_unique<TestMachine>(barriers_, owner, child);
  }
  Result<void> Keep(const std::string& directory, Extent) override {
    std::ofstream(directory + "/disk.img") << spec_.id;
    return Passed("keep");
  }
  Result<void> Resize(std::uint64_t disk_bytes) override {
    spec_.disk_bytes = disk_bytes;
    return {};
  }
  Result<void> SetNetwork(const egress::Policy&, SentCap) override { return {}; }
  Result<Stats> ReadStats() override { return Stats{}; }
  Result<os::UniqueFd> Connect() override { return os::OpenFile("/dev/null", 0); }

 private:
  Result<void> Passed(const std::string& what) {
    barriers_.Pass(what + " " + spec_.id);
    return {};
  }
  Barriers& barriers_;
  const uid_t owner_;
  MachineSpec spec_;
  State state_ = State::kRunning;
};

class TestDriver final : public LocalDriver {
 public:
  TestDriver(Barriers& barriers, const StoreOfOne& store) : barriers_(barriers), store_(store) {
    std::filesystem::create_directories(SnapshotsDirectory());
  }
  Capabilities capabilities() const override {
    return {.driver = "test",
            .pause = Level::kMemory,
            .snapshot = Extent::kFilesystem,
            .fork = Extent::kFilesystem,
            .resize_disk = true};
  }
  const images::Store& store() const override { return store_.store(); }
  std::string SnapshotsDirectory() const override { return store_.directory() + "/snapshots"; }
  Result<std::vector<std::unique_ptr<LocalMachine>>> Adopt() override {
    return std::vector<std::unique_ptr<LocalMachine>>();
  }
  Result<std::unique_ptr<LocalMachine>> Make(uid_t owner, const MachineSpec& spec) override {
    barriers_.Pass("make " + spec.id);
    return std::make_unique<TestMachine>(barriers_, owner, spec);
  }
  Result<std::unique_ptr<LocalMachine>> Restore(const std::string& directory, const Snapshot&,
                                                uid_t owner, const MachineSpec& spec) override {
    barriers_.Pass("restore " + spec.id);
    EXPECT_TRUE(std::filesystem::exists(directory + "/disk.img"));
    return std::make_unique<TestMachine>(barriers_, owner, spec);
  }

 private:
  Barriers& barriers_;
  const StoreOfOne& store_;
};

}  // namespace caisson::machine
