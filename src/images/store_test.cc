// SPDX-License-Identifier: Apache-2.0
#include "images/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/digest/sha256.h"
#include "errors/images.h"
#include "images/files.h"
#include "images/test_directory.h"
#include "images/tree.h"

namespace caisson::images {
namespace {

namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    auto store = Store::Open(directory_.path() + "/deep/images");
    EXPECT_TRUE(store) << store.error().message;
    if (store) store_ = *store;
  }
  // Publishes a root with one file that holds `text`.
  std::string Make(const std::string& name, const std::string& text) {
    auto building = store_->Begin({}, [] {});
    EXPECT_TRUE(building) << building.error().message;
    const std::string draft = building->path() + "/1";
    fs::create_directories(draft + "/root");
    EXPECT_TRUE(WriteFile(draft + "/root/file", text));
    auto manifest = MakeManifest(draft + "/root", 0);
    EXPECT_TRUE(manifest);
    auto image = store_->Publish(
        {.draft = draft, .name = name, .manifest = *manifest, .info = json::Object{{"bytes", 1}}});
    EXPECT_TRUE(image) << image.error().message;
    return image ? image->id : "";
  }
  std::size_t Count() { return store_->List()->size(); }

  TestDirectory directory_;
  std::optional<Store> store_;
};

TEST_F(StoreTest, finds_by_name_id_and_prefix) {
  const std::string id = Make("one", "1");
  for (const std::string& word : {std::string("one"), id, id.substr(0, 12)}) {
    auto image = store_->Find(word);
    ASSERT_TRUE(image) << word;
    EXPECT_EQ(image->id, id);
    EXPECT_EQ(image->names, std::vector<std::string>{"one"});
    EXPECT_EQ(*ReadFile(image->root + "/file"), "1");
    EXPECT_EQ(digest::Sha256Hex(*ReadFile(image->manifest)), id);
  }
  for (const std::string& word : {std::string("two"), id.substr(0, 11), std::string("../one"),
                                  std::string(""), std::string(64, '0')}) {
    auto image = store_->Find(word);
    ASSERT_FALSE(image) << word;
    EXPECT_EQ(image.error().code, errors::kImagesUnknown);
  }
}

TEST_F(StoreTest, keeps_the_same_content_once) {
  const std::string id = Make("one", "1");
  EXPECT_EQ(Make("two", "1"), id);
  EXPECT_EQ(Count(), 1U);
  EXPECT_EQ(store_->Find(id)->names, (std::vector<std::string>{"one", "two"}));
}

TEST_F(StoreTest, a_build_that_takes_a_name_over_frees_the_old_image) {
  const std::string first = Make("one", "1");
  const std::string second = Make("one", "2");
  EXPECT_NE(first, second);
  EXPECT_EQ(Count(), 1U);
  EXPECT_FALSE(store_->Find(first));
}

TEST_F(StoreTest, removes_a_name_and_then_the_data) {
  const std::string id = Make("one", "1");
  Make("two", "1");
  auto gone = store_->Remove("one");
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->empty());
  gone = store_->Remove("two");
  ASSERT_TRUE(gone);
  EXPECT_EQ(*gone, std::vector<std::string>{id});
  EXPECT_EQ(Count(), 0U);
  EXPECT_FALSE(fs::exists(store_->directory() + "/" + id));
}

TEST_F(StoreTest, removing_an_id_takes_all_of_its_names) {
  const std::string id = Make("one", "1");
  Make("two", "1");
  Make("other", "2");
  ASSERT_TRUE(store_->Remove(id.substr(0, 12)));
  EXPECT_FALSE(store_->Find("one"));
  EXPECT_FALSE(store_->Find("two"));
  EXPECT_TRUE(store_->Find("other"));
  auto again = store_->Remove(id);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, errors::kImagesUnknown);
}

TEST_F(StoreTest, does_not_remove_what_is_held) {
  const std::string id = Make("one", "1");
  {
    auto held = store_->Hold("one");
    auto also = store_->Hold(id);
    ASSERT_TRUE(held && also);
    for (const std::string& word : {std::string("one"), id}) {
      auto gone = store_->Remove(word);
      ASSERT_FALSE(gone);
      EXPECT_EQ(gone.error().code, errors::kImagesInUse);
    }
    EXPECT_TRUE(store_->Find("one"));
    Make("one", "2");  // takes the name over; the held image stays
    EXPECT_EQ(Count(), 2U);
    EXPECT_TRUE(store_->Find(id)->names.empty());
  }
  ASSERT_TRUE(store_->Remove("one"));
  EXPECT_EQ(Count(), 0U);
}

TEST_F(StoreTest, an_abandoned_build_leaves_nothing) {
  {
    auto building = store_->Begin({}, [] {});
  }
  fs::create_directories(store_->directory() + "/.building-1/1/root/etc");
  fs::create_directories(store_->directory() + "/.doomed-x/root");
  std::string path;
  {
    auto building = store_->Begin({}, [] {});
    ASSERT_TRUE(building);
    path = building->path();
    EXPECT_TRUE(fs::exists(path));
    EXPECT_FALSE(fs::exists(store_->directory() + "/.building-1"));
    EXPECT_FALSE(fs::exists(store_->directory() + "/.doomed-x"));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(Count(), 0U);
}

TEST_F(StoreTest, builds_wait_for_one_another) {
  std::optional<Building> first = *store_->Begin({}, [] {});
  std::atomic<bool> waited = false;
  std::atomic<bool> began = false;
  std::jthread second([&] {
    auto building = store_->Begin({}, [&] { waited = true; });
    began = building.has_value();
  });
  while (!waited) std::this_thread::yield();
  EXPECT_FALSE(began);
  EXPECT_TRUE(fs::exists(first->path()));
  first.reset();
  second.join();
  EXPECT_TRUE(began);
}

TEST_F(StoreTest, waiting_for_a_build_can_be_stopped) {
  auto first = store_->Begin({}, [] {});
  std::stop_source source;
  auto second = store_->Begin(source.get_token(), [&] { source.request_stop(); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errors::kImagesInterrupted);
  EXPECT_TRUE(fs::exists(first->path()));
}

TEST_F(StoreTest, a_directory_that_is_missing_is_an_empty_store_and_stays_missing) {
  EXPECT_EQ(Count(), 0u);
  EXPECT_EQ(store_->Find("one").error().code, errors::kImagesUnknown);
  EXPECT_EQ(store_->Hold("one").error().code, errors::kImagesUnknown);
  EXPECT_EQ(store_->Remove("one").error().code, errors::kImagesUnknown);
  EXPECT_FALSE(fs::exists(store_->directory()));
}

TEST_F(StoreTest, refuses_a_directory_that_others_can_write) {
  fs::create_directories(store_->directory());
  fs::permissions(store_->directory(), fs::perms(0775));
  auto store = Store::Open(store_->directory());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, errors::kImagesStore);
}

// In a child that has given up root.
bool CanUseAsSomeoneElse(const Store& store, const std::string& name) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    auto own = Store::Open(store.directory());
    if (!own) ::_exit(3);
    auto held = own->Hold(name);
    ::_exit(held && ReadFile(held->image.root + "/file") && own->List() ? 0 : 4);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST_F(StoreTest, what_root_built_serves_users_who_are_not_root) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const mode_t before = ::umask(077);
  Make("one", "1");
  ::umask(before);
  fs::permissions(directory_.path(), fs::perms(0755));
  fs::permissions(directory_.path() + "/deep", fs::perms(0755));
  ASSERT_TRUE(NormaliseTree(store_->Find("one")->root, 0));
  EXPECT_TRUE(CanUseAsSomeoneElse(*store_, "one"));
}

TEST_F(StoreTest, says_which_entry_is_broken) {
  const std::string id = Make("one", "1");
  ASSERT_TRUE(WriteFile(store_->directory() + "/" + id + "/image.json", "{"));
  auto all = store_->List();
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("image.json"), std::string::npos);
  ASSERT_TRUE(WriteFile(store_->directory() + "/" + id + "/image.json", "{}"));
  ASSERT_TRUE(WriteFile(store_->directory() + "/names/one", "nonsense"));
  all = store_->List();
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("names/one"), std::string::npos);
}

}  // namespace
}  // namespace caisson::images
