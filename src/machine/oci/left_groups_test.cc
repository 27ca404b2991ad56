// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/left_groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "machine/oci/launch.h"

namespace caisson::machine::oci {
namespace {

TEST(LeftGroups, KnowsTheGroupsThatThisProcessIsIn) {
  EXPECT_EQ(OwnGroups("9:name=systemd:/\n8:pids:/a/b\n4:memory:/a/b\n2:cpu,cpuacct:/c:d\n0::/\n"),
            (std::vector<std::string>{"", "/a/b", "/c:d"}));
  EXPECT_TRUE(OwnGroups("nonsense\n\n").empty());
}

// Directories are groups enough.
TEST(LeftGroups, RemovesThoseOfOneNameInEveryHierarchyAndNoOthers) {
  char pattern[] = "/tmp/caisson-left-groups-XXXXXX";
  const std::string root = ::mkdtemp(pattern);
  for (const char* directory : {"/v1/a/slot", "/v1/slot", "/v2/slot", "/v2/other", "/no/slot"}) {
    std::filesystem::create_directories(root + directory);
  }
  const std::string mountinfo = "30 1 0:1 / " + root + "/v1 rw - cgroup cgroup rw,memory\n" +
                                "31 1 0:2 / " + root + "/v2 rw - cgroup2 cgroup2 rw\n" +
                                "32 1 0:3 / " + root + "/no rw - tmpfs tmpfs rw\n";
  ASSERT_TRUE(RemoveLeftGroups("slot", {"", "/a"}, mountinfo));
  EXPECT_FALSE(std::filesystem::exists(root + "/v1/a/slot"));
  EXPECT_FALSE(std::filesystem::exists(root + "/v1/slot"));
  EXPECT_FALSE(std::filesystem::exists(root + "/v2/slot"));
  EXPECT_TRUE(std::filesystem::exists(root + "/v2/other"));
  EXPECT_TRUE(std::filesystem::exists(root + "/no/slot"));
  ASSERT_TRUE(RemoveLeftGroups("slot", {"", "/a"}, mountinfo)) << "fine when there are none";
  std::filesystem::remove_all(root);
}

TEST(Launch, FindsAPlaceThatHoldsNothingOfWhatIsNeeded) {
  const auto place = FindPlace({"/var/lib/caisson"});
  ASSERT_TRUE(place) << place.error().message;
  const auto other = FindPlace({*place + "/images"});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_NE(*other, *place);
  EXPECT_FALSE(FindPlace({"/dev/shm", "/mnt/x", "/srv/x", "/media/x", "/opt/x"}));
}

TEST(Launch, TellsTheLastWordsOfAProgramThatFails) {
  if (::geteuid() != 0) GTEST_SKIP() << "mount namespaces are made by root";
  char pattern[] = "/tmp/caisson-launch-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  const auto place = FindPlace({folder});
  ASSERT_TRUE(place);
  const auto ran = oci::Run({.arguments = {"/bin/sh", "-c", "echo no room >&2; exit 3"},
                             .place = *place,
                             .messages = folder + "/messages"});
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("exited with code 3: no room"), std::string::npos)
      << ran.error().message;
  const auto late = oci::Run({.arguments = {"/bin/sleep", "60"},
                              .place = *place,
                              .messages = folder + "/messages",
                              .patience = std::chrono::milliseconds(50)});
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("did not end in time"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace caisson::machine::oci
