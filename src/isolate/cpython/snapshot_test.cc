// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/snapshot.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::isolate::cpython {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

class SnapshotStoreTest : public testing::Test {
 protected:
  SnapshotStoreTest() {
    std::string path = testing::TempDir() + "caisson-snapshots-XXXXXX";
    directory_ = mkdtemp(path.data());
  }
  ~SnapshotStoreTest() override { fs::remove_all(directory_); }

  static Snapshot Make(char filling) {
    std::string memory(std::size_t{4} * 65536, '\0');
    memory.replace(8192, 5000, 5000, filling);
    Snapshot snapshot;
    snapshot.set = "base";
    snapshot.image = wasm::MemoryImage::Make(memory, memory.size()).value();
    snapshot.stack_pointer = 1024;
    snapshot.entry_address = 77;
    snapshot.entry_size = 5;
    snapshot.about = R"({"python":"3"})";
    snapshot.made = std::time(nullptr);
    return snapshot;
  }
  std::optional<Snapshot> Load(const SnapshotStore& store, std::string_view key) {
    wasm::CheckedFiles checked;
    return store.Load(key, hours(1), checked).value();
  }
  // As in a process that has checked nothing yet.
  static bool Has(const SnapshotStore& store, std::string_view key) {
    wasm::CheckedFiles checked;
    return store.Has(key, hours(1), checked);
  }
  std::vector<fs::path> Files(std::string_view suffix) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().extension() == suffix) found.push_back(entry.path());
    }
    return found;
  }
  std::string directory_;
};

TEST_F(SnapshotStoreTest, GivesBackWhatItWasGiven) {
  const SnapshotStore store(directory_, 1u << 30);
  EXPECT_FALSE(Has(store, "key"));
  EXPECT_FALSE(Load(store, "key"));
  const Snapshot snapshot = Make('a');
  ASSERT_TRUE(store.Save("key", snapshot).has_value());
  EXPECT_TRUE(Has(store, "key"));
  const auto loaded = Load(store, "key");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->image->bytes(), snapshot.image->bytes());
  EXPECT_EQ(loaded->set, "base");
  EXPECT_EQ(loaded->stack_pointer, 1024);
  EXPECT_EQ(loaded->entry_address, 77u);
  EXPECT_EQ(loaded->entry_size, 5u);
  EXPECT_EQ(loaded->about, snapshot.about);
}

TEST_F(SnapshotStoreTest, KeepsPagesOfZerosOutOfTheFile) {
  const SnapshotStore store(directory_, 1u << 30);
  ASSERT_TRUE(store.Save("key", Make('a')).has_value());
  struct stat info{};
  ASSERT_EQ(stat(Files(".image").at(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 4 * 65536);
  EXPECT_LT(info.st_blocks * 512, 65536);
}

TEST_F(SnapshotStoreTest, TakesWhatIsDamagedForMissing) {
  const SnapshotStore store(directory_, 1u << 30);
  for (const char* suffix : {".image", ".snapshot"}) {
    ASSERT_TRUE(store.Save("key", Make('a')).has_value());
    ASSERT_TRUE(Load(store, "key"));
    std::fstream file(Files(suffix).at(0), std::ios::in | std::ios::out);
    file.seekp(100);
    file.put('\1');
    file.close();
    EXPECT_FALSE(Load(store, "key")) << suffix;
    EXPECT_FALSE(Has(store, "key")) << suffix;
  }
  ASSERT_TRUE(store.Save("key", Make('a')).has_value());
  fs::resize_file(Files(".image").at(0), 5000);
  EXPECT_FALSE(Load(store, "key")) << "cut off";
  EXPECT_FALSE(Has(store, "key")) << "cut off";
  ASSERT_TRUE(store.Save("key", Make('a')).has_value());
  fs::permissions(Files(".image").at(0), fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(Load(store, "key")) << "others could have written it";
  ASSERT_TRUE(store.Save("key", Make('a')).has_value());
  fs::remove(Files(".image").at(0));
  EXPECT_FALSE(Load(store, "key"));
  EXPECT_FALSE(Has(store, "key"));
}

TEST_F(SnapshotStoreTest, MakesOldOnesAnew) {
  const SnapshotStore store(directory_, 1u << 30);
  Snapshot snapshot = Make('a');
  snapshot.made -= 7200;
  ASSERT_TRUE(store.Save("key", snapshot).has_value());
  EXPECT_FALSE(Has(store, "key"));
  EXPECT_FALSE(Load(store, "key"));
}

TEST_F(SnapshotStoreTest, DropsWhatWasUsedLeastRecentlyAndNeverWhatWasJustWritten) {
  const SnapshotStore store(directory_, 1);  // no room for two
  ASSERT_TRUE(store.Save("one", Make('a')).has_value());
  EXPECT_TRUE(Load(store, "one"));
  ASSERT_TRUE(store.Save("two", Make('b')).has_value());
  EXPECT_FALSE(Load(store, "one"));
  EXPECT_TRUE(Load(store, "two"));
  EXPECT_EQ(Files(".image").size(), 1u);
  EXPECT_EQ(Files(".snapshot").size(), 1u);
}

TEST_F(SnapshotStoreTest, RemovesWhatBelongsToNothing) {
  const SnapshotStore store(directory_, 1u << 30);
  ASSERT_TRUE(store.Save("key", Make('a')).has_value());
  ASSERT_TRUE(store.Save("key", Make('b')).has_value());  // in place of the first
  std::ofstream(directory_ + "/old.snapshot") << "caisson-snapshot-1\n";
  ASSERT_TRUE(store.Save("other", Make('c')).has_value());
  EXPECT_EQ(Files(".image").size(), 2u);
  EXPECT_EQ(Files(".snapshot").size(), 2u);
}

}  // namespace
}  // namespace caisson::isolate::cpython
