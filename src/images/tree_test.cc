// SPDX-License-Identifier: Apache-2.0
#include "images/tree.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "errors/images.h"
#include "images/files.h"
#include "images/manifest.h"
#include "images/test_directory.h"

namespace caisson::images {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kEpoch = 1767225600;

class TreeTest : public ::testing::Test {
 protected:
  void Put(const std::string& relative, const std::string& text = "x", unsigned mode = 0640) {
    const fs::path path = fs::path(Root()) / relative;
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFile(path.string(), text, mode));
  }
  bool Has(const std::string& relative) {
    return fs::exists(fs::symlink_status(fs::path(Root()) / relative));
  }
  unsigned ModeOf(const std::string& relative) {
    struct stat info{};
    EXPECT_EQ(::lstat((Root() + "/" + relative).c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  std::string Root() { return directory_.path() + "/root"; }
  std::string Id() {
    auto manifest = MakeManifest(Root(), kEpoch);
    EXPECT_TRUE(manifest) << manifest.error().message;
    return manifest ? manifest->id : "";
  }
  TestDirectory directory_;
};

TEST_F(TreeTest, removes_what_patterns_name) {
  for (const char* path :
       {"usr/share/doc/a/copyright", "usr/share/doc/a/README", "usr/bin/dpkg-deb",
        "usr/bin/python3", "lib/a/b/tests/c/d.py", "lib/a/tests.py", "tests/e"}) {
    Put(path);
  }
  auto removed = RemoveMatches(Root(), {"usr/share/doc/*/[!c]*", "usr/bin/dpkg*", "lib/**/tests"});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(Has("usr/share/doc/a/copyright"));
  EXPECT_FALSE(Has("usr/share/doc/a/README"));
  EXPECT_FALSE(Has("usr/bin/dpkg-deb"));
  EXPECT_TRUE(Has("usr/bin/python3"));
  EXPECT_FALSE(Has("lib/a/b/tests"));
  EXPECT_TRUE(Has("lib/a/b"));
  EXPECT_TRUE(Has("lib/a/tests.py"));
  EXPECT_TRUE(Has("tests/e"));
}

TEST_F(TreeTest, refuses_a_pattern_that_matches_nothing_and_removes_nothing) {
  Put("usr/bin/python3");
  auto removed = RemoveMatches(Root(), {"usr/bin/*", "usr/sbin"});
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, errors::kImagesDefinition);
  EXPECT_NE(removed.error().message.find("'usr/sbin'"), std::string::npos);
  EXPECT_TRUE(Has("usr/bin/python3"));
}

TEST_F(TreeTest, removing_does_not_follow_links) {
  Put("inside/a");
  ASSERT_TRUE(WriteFile(directory_.path() + "/outside", "keep"));
  fs::create_symlink("../../outside", Root() + "/inside/link");
  fs::create_directory_symlink(directory_.path(), Root() + "/inside/all");
  ASSERT_TRUE(RemoveTree(Root() + "/inside"));
  EXPECT_FALSE(Has("inside"));
  EXPECT_TRUE(fs::exists(directory_.path() + "/outside"));
}

TEST_F(TreeTest, removing_nothing_is_no_mistake) {
  EXPECT_TRUE(RemoveTree(directory_.path() + "/missing/too"));
}

TEST_F(TreeTest, refuses_to_remove_what_is_mounted) {
  Put("a/before");
  fs::create_directories(Root() + "/a/mount");
  ASSERT_TRUE(WriteFile(directory_.path() + "/victim", "keep"));
  if (::mount(directory_.path().c_str(), (Root() + "/a/mount").c_str(), nullptr, MS_BIND,
              nullptr)) {
    GTEST_SKIP() << "mounting needs root";
  }
  auto removed = RemoveTree(Root());
  ::umount2((Root() + "/a/mount").c_str(), MNT_DETACH);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, errors::kImagesTree);
  EXPECT_TRUE(Has("a/before"));
  EXPECT_TRUE(fs::exists(directory_.path() + "/victim"));
}

TEST_F(TreeTest, gives_everything_one_form) {
  Put("usr/bin/tool", "x", 0700);
  Put("usr/bin/setuid", "x", 04755);
  Put("etc/secret", "x", 0600);
  Put("tmp/a");
  fs::create_directories(Root() + "/root");
  fs::permissions(Root() + "/root", fs::perms::owner_all);
  fs::permissions(Root() + "/tmp", fs::perms::owner_all);
  fs::permissions(Root(), fs::perms::owner_all);
  fs::create_symlink("nowhere", Root() + "/link");
  ASSERT_TRUE(NormaliseTree(Root(), kEpoch));
  EXPECT_EQ(ModeOf("usr/bin/tool"), 0755U);
  EXPECT_EQ(ModeOf("usr/bin/setuid"), 0755U);
  EXPECT_EQ(ModeOf("etc/secret"), 0644U);
  EXPECT_EQ(ModeOf("root"), 0700U);
  EXPECT_EQ(ModeOf("tmp"), 01777U);
  EXPECT_EQ(ModeOf("."), 0755U);
  struct stat info{};
  ASSERT_EQ(::lstat((Root() + "/link").c_str(), &info), 0);
  EXPECT_EQ(info.st_mtim.tv_sec, kEpoch);
}

TEST_F(TreeTest, refuses_what_is_no_file_directory_or_link) {
  Put("a");
  ASSERT_EQ(::mkfifo((Root() + "/pipe").c_str(), 0644), 0);
  auto normal = NormaliseTree(Root(), kEpoch);
  ASSERT_FALSE(normal);
  EXPECT_EQ(normal.error().code, errors::kImagesTree);
  auto manifest = MakeManifest(Root(), kEpoch);
  ASSERT_FALSE(manifest);
  EXPECT_NE(manifest.error().message.find("/pipe"), std::string::npos);
}

TEST_F(TreeTest, manifest_depends_on_content_and_not_on_the_way_there) {
  Put("b", "two");
  Put("a/c", "three");
  fs::create_symlink("a", Root() + "/l");
  ASSERT_TRUE(NormaliseTree(Root(), kEpoch));
  auto first = MakeManifest(Root(), kEpoch);
  ASSERT_TRUE(first);
  ASSERT_TRUE(RemoveTree(Root()));
  fs::create_directories(Root());
  fs::create_symlink("a", Root() + "/l");
  Put("a/c", "three", 0600);
  Put("b", "two", 0644);
  ASSERT_TRUE(NormaliseTree(Root(), kEpoch));
  auto second = MakeManifest(Root(), kEpoch);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->text, second->text);
  EXPECT_EQ(first->id, second->id);
  EXPECT_EQ(first->files, 2U);
  EXPECT_EQ(first->bytes, 8U);
  EXPECT_EQ(first->text,
            "{\"epoch\":1767225600,\"format\":1}\n"
            "{\"mode\":\"0755\",\"path\":\"a\",\"type\":\"directory\"}\n"
            "{\"mode\":\"0644\",\"path\":\"a/c\",\"sha256\":"
            "\"8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f\",\"size\":5,"
            "\"type\":\"file\"}\n"
            "{\"mode\":\"0644\",\"path\":\"b\",\"sha256\":"
            "\"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3\",\"size\":3,"
            "\"type\":\"file\"}\n"
            "{\"path\":\"l\",\"target\":\"a\",\"type\":\"link\"}\n");
}

TEST_F(TreeTest, every_change_gives_another_id) {
  Put("a", "one", 0644);
  const std::string before = Id();
  Put("a", "two", 0644);
  EXPECT_NE(Id(), before);
  Put("a", "one", 0755);
  EXPECT_NE(Id(), before);
  Put("a", "one", 0644);
  EXPECT_EQ(Id(), before);
  Put("b", "", 0644);
  EXPECT_NE(Id(), before);
}

TEST_F(TreeTest, manifest_refuses_a_name_that_is_no_text) {
  Put("bad\xff");
  auto manifest = MakeManifest(Root(), kEpoch);
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, errors::kImagesTree);
}

TEST_F(TreeTest, comparing_names_every_difference) {
  Put("same", "1", 0644);
  Put("mode", "1", 0644);
  Put("text", "1", 0644);
  Put("first", "1", 0644);
  const std::string first = MakeManifest(Root(), kEpoch)->text;
  Put("mode", "1", 0755);
  Put("text", "2", 0644);
  fs::remove(Root() + "/first");
  Put("second", "1", 0644);
  const std::string second = MakeManifest(Root(), kEpoch)->text;
  auto differences = CompareManifests(first, second);
  ASSERT_TRUE(differences);
  std::string text;
  for (const Difference& one : *differences) text += one.path + ": " + one.what + "\n";
  EXPECT_EQ(text,
            "first: only in the first\nmode: differs in mode\nsecond: only in the second\n"
            "text: differs in sha256\n");
  EXPECT_TRUE(CompareManifests(first, first)->empty());
  EXPECT_FALSE(CompareManifests(first, "no manifest"));
}

}  // namespace
}  // namespace caisson::images
