// SPDX-License-Identifier: Apache-2.0
// The parts of a build that need no archive: choosing sources, checking locks, calling tools.
#include "images/build.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "errors/images.h"
#include "images/files.h"
#include "images/libraries.h"
#include "images/packages.h"
#include "images/test_directory.h"
#include "images/tool.h"

namespace caisson::images {
namespace {

TEST(AptSources, are_the_files_that_offer_the_suite) {
  auto files = ChooseAptSources(
      "/etc/a b.sources:1 bookworm\n/etc/a b.sources:1 bookworm-updates\n"
      "/etc/c.list:2 bookworm-security\n/etc/d.list:1 trixie\n",
      "bookworm");
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(*files, (std::vector<std::string>{"/etc/a b.sources", "/etc/c.list"}));
}

TEST(AptSources, are_refused_when_they_mix_releases_or_lack_the_suite) {
  for (const char* lines :
       {"/etc/a:1 bookworm\n/etc/a:2 trixie\n", "/etc/a:1 trixie\n", "", "x\n"}) {
    auto files = ChooseAptSources(lines, "bookworm");
    ASSERT_FALSE(files) << lines;
    EXPECT_EQ(files.error().code, errors::kImagesSources);
    EXPECT_NE(files.error().message.find("--apt-sources"), std::string::npos);
  }
}

TEST(GuestSources, are_copied_without_comments) {
  TestDirectory directory;
  const std::string root = directory.path() + "/root";
  std::filesystem::create_directories(root + "/etc/apt/sources.list.d");
  const std::string file = directory.path() + "/own.sources";
  const auto add = [&](const std::string& text) {
    EXPECT_TRUE(WriteFile(file, text));
    return AddGuestSources({file}, root);
  };
  EXPECT_TRUE(add("# where\nTypes: deb\nURIs: http://archive.example/debian\n"));
  EXPECT_EQ(ReadFile(root + "/etc/apt/sources.list.d/own.sources").value(),
            "Types: deb\nURIs: http://archive.example/debian\n");
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"deb https://user:secret@archive.example/debian bookworm main\n", "password"},
           {"Signed-By: /usr/share/keyrings/own.gpg\n", "/usr/share/keyrings/own.gpg"}}) {
    const auto refused = add(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, errors::kImagesSources);
    EXPECT_NE(refused.error().message.find(says), std::string::npos) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  }
}

TEST(Lock, must_name_exactly_what_came) {
  const PackageLock lock = {{"a", {"1", "x"}}, {"b", {"2", "y"}}};
  EXPECT_TRUE(CheckAgainstLock(lock, lock));
  const std::vector<std::pair<PackageLock, std::string>> cases = {
      {{{"a", {"1", "x"}}}, "did not fetch b"},
      {{{"a", {"1", "x"}}, {"b", {"2", "y"}}, {"c", {"3", "z"}}}, "added c=3"},
      {{{"a", {"1", "x"}}, {"b", {"3", "y"}}}, "b is 3"},
      {{{"a", {"1", "x"}}, {"b", {"2", "z"}}}, "sha256 z"},
  };
  for (const auto& [found, expected] : cases) {
    auto checked = CheckAgainstLock(lock, found);
    ASSERT_FALSE(checked) << expected;
    EXPECT_EQ(checked.error().code, errors::kImagesLock);
    EXPECT_NE(checked.error().message.find(expected), std::string::npos) << checked.error().message;
  }
}

TEST(Lock, lets_newer_versions_pass_where_they_are_wanted_and_no_other_hash_of_its_own) {
  const PackageLock lock = {{"a", {"1", "x"}}, {"b", {"2", "y"}}};
  const PackageLock newer = {{"a", {"1", "x"}}, {"b", {"3", "z"}}, {"c", {"1", "z"}}};
  EXPECT_TRUE(CheckAgainstLock(lock, newer, Versions::kLockedOrNewer));
  const PackageLock forged = {{"a", {"1", "z"}}, {"b", {"3", "z"}}};
  EXPECT_FALSE(CheckAgainstLock(lock, forged, Versions::kLockedOrNewer));
  EXPECT_FALSE(CheckAgainstLock(lock, {{"a", {"1", "x"}}}, Versions::kLockedOrNewer));
}

TEST(Tool, failure_shows_the_last_lines) {
  auto done = RunTool({.arguments = {"sh", "-c", "seq 40 >&2; exit 7"}}, "dash", {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errors::kImagesToolFailed);
  EXPECT_NE(done.error().message.find("exited with code 7"), std::string::npos);
  EXPECT_TRUE(done.error().details.starts_with("26\n")) << done.error().details;
  EXPECT_TRUE(done.error().details.ends_with("\n40"));
}

TEST(Tool, failure_without_messages_shows_its_output) {
  auto done = RunTool({.arguments = {"sh", "-c", "echo why; exit 1"}}, "dash", {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().details, "why");
}

TEST(Tool, missing_names_the_package) {
  auto done = RunTool({.arguments = {"caisson-no-such-tool"}}, "some-package", {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errors::kImagesToolMissing);
  EXPECT_NE(done.error().message.find("some-package"), std::string::npos);
}

TEST(LastLines, are_the_last) {
  EXPECT_EQ(LastLines("a\nb\nc\n", 2), "b\nc");
  EXPECT_EQ(LastLines("a\nb", 5), "a\nb");
  EXPECT_EQ(LastLines("", 2), "");
}

TEST(PinnedVersions, are_read_from_a_pip_lock) {
  EXPECT_EQ(
      PinnedVersions("# comment\nnumpy==2.4.6 --hash=sha256:00\nsix==1.17.0 \\\n"
                     "    --hash=sha256:11\npytz==1 ; python_version < '4'\n"),
      (std::map<std::string, std::string>{{"numpy", "2.4.6"}, {"six", "1.17.0"}, {"pytz", "1"}}));
}

class BuildTest : public ::testing::Test {
 protected:
  BuildTest() : store_(*Store::Open(directory_.path() + "/store")) {
    definition_.name = "tiny";
    definition_.suite = "bookworm";
    definition_.lock_path = directory_.path() + "/tiny.lock";
    definition_.packages = {"base-files"};
  }
  TestDirectory directory_;
  Store store_;
  Definition definition_;
};

TEST_F(BuildTest, needs_a_lock_that_names_what_is_wanted) {
  if (::geteuid() != 0) GTEST_SKIP() << "building needs root";
  auto image = Build(store_, definition_, {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, errors::kImagesLock);
  definition_.lock = {{"other", {"1", "x"}}};
  image = Build(store_, definition_, {});
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("does not name base-files"), std::string::npos);
}

TEST_F(BuildTest, says_before_it_fetches_that_a_program_is_missing) {
  if (::geteuid() != 0) GTEST_SKIP() << "building needs root";
  definition_.lock = {{"base-files", {"1", "x"}}};
  definition_.programs = {{"usr/libexec/agent", "caisson-agent"}};
  const auto image = Build(store_, definition_, {.programs_directory = directory_.path()});
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("caisson-agent, which goes into the image, is not at"),
            std::string::npos);
}

TEST_F(BuildTest, stopped_before_it_starts_leaves_nothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "building needs root";
  definition_.lock = {{"base-files", {"1", "x"}}};
  std::stop_source source;
  source.request_stop();
  auto image = Build(store_, definition_,
                     {.apt_sources = {"/nonexistent.list"}, .stop = source.get_token()});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, errors::kImagesInterrupted);
  EXPECT_TRUE(store_.List()->empty());
}

TEST_F(BuildTest, refuses_other_users) {
  if (::geteuid() == 0) GTEST_SKIP() << "this is root";
  auto image = Build(store_, definition_, {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, errors::kImagesPrivilege);
}

}  // namespace
}  // namespace caisson::images
