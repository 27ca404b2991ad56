// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "os/cgroup_reaper.h"
#include "os/fd.h"

namespace caisson::os {
namespace {

namespace fs = std::filesystem;

// A directory that looks like a mounted hierarchy.
class FakeHierarchy : public testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::temp_directory_path() / ("caisson-cgroup-test." + std::to_string(::getpid())))
                .string();
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Group(const std::string& path, const std::string& handed_down) {
    fs::create_directories(root_ + path);
    std::ofstream(root_ + path + "/cgroup.subtree_control") << handed_down << "\n";
    std::ofstream(root_ + path + "/cgroup.controllers") << "cpu memory pids\n";
  }
  std::string V2(const std::string& mount_root = "/") const {
    return "31 23 0:28 " + mount_root + " " + root_ +
           " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  }

  std::string root_;
};

const ControllerPlace& Memory(const std::array<ControllerPlace, 3>& places) { return places[0]; }

TEST_F(FakeHierarchy, V2TakesTheNearestGroupThatHandsTheControllerDown) {
  Group("", "cpu memory pids");
  Group("/user.slice", "memory pids");
  Group("/user.slice/session.scope", "");
  const auto places = FindControllers(V2(), "0::/user.slice/session.scope\n");
  EXPECT_EQ(Memory(places).version, 2) << Memory(places).reason;
  EXPECT_EQ(Memory(places).parent, root_ + "/user.slice");
  EXPECT_EQ(places[1].parent, root_);  // cpu is handed down from the root only
  EXPECT_EQ(places[2].parent, root_ + "/user.slice");
}

TEST_F(FakeHierarchy, V2SaysWhyAControllerCannotBeHad) {
  Group("", "pids");
  Group("/a", "");
  auto places = FindControllers(V2(), "0::/a\n");
  EXPECT_EQ(Memory(places).version, 0);
  EXPECT_NE(Memory(places).reason.find("hands the controller down"), std::string::npos);
  std::ofstream(root_ + "/cgroup.controllers") << "hugetlb\n";
  places = FindControllers(V2(), "0::/a\n");
  EXPECT_NE(Memory(places).reason.find("does not have the controller"), std::string::npos);
}

TEST_F(FakeHierarchy, TakesOnlyGroupsThatItMayWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  Group("", "memory");
  fs::permissions(root_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto places = FindControllers(V2(), "0::/\n");
  fs::permissions(root_, fs::perms::owner_all);
  EXPECT_EQ(Memory(places).version, 0);
  EXPECT_NE(Memory(places).reason.find("not writable"), std::string::npos);
}

TEST_F(FakeHierarchy, AContainersMountShowsOnlyItsPartOfTheTree) {
  Group("", "memory");
  const auto places = FindControllers(V2("/docker/abc"), "0::/docker/abc\n");
  EXPECT_EQ(Memory(places).parent, root_) << Memory(places).reason;
}

TEST_F(FakeHierarchy, V1IsFoundByItsOptionsAndPreferredInAHybrid) {
  fs::create_directories(root_ + "/job");
  const std::string mounts = "34 31 0:31 / " + root_ +
                             " rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
                             "41 31 0:38 / /nonexistent rw - cgroup2 cgroup2 rw\n";
  const auto places = FindControllers(mounts, "3:cpu,cpuacct:/job\n0::/elsewhere\n");
  EXPECT_EQ(places[1].version, 1) << places[1].reason;
  EXPECT_EQ(places[1].parent, root_ + "/job");
  EXPECT_EQ(Memory(places).version, 0);
}

TEST_F(FakeHierarchy, GroupsFreezeWhereControllersAreHandedDownElseInOurOwnGroup) {
  Group("", "memory");
  Group("/a", "");
  EXPECT_EQ(FindUnifiedParent(V2(), "0::/a\n"), root_);
  Group("", "");
  EXPECT_EQ(FindUnifiedParent(V2(), "0::/a\n"), root_ + "/a");
  EXPECT_EQ(FindFreezerParent(V2(), "0::/a\n"), "");
  EXPECT_EQ(FindUnifiedParent("", ""), "");
}

TEST_F(FakeHierarchy, FindsTheFreezerOfVersion1) {
  fs::create_directories(root_ + "/job");
  const std::string mounts = "34 31 0:31 / " + root_ + " rw,relatime - cgroup cgroup rw,freezer\n";
  EXPECT_EQ(FindFreezerParent(mounts, "3:freezer:/job\n"), root_ + "/job");
  EXPECT_EQ(FindUnifiedParent(mounts, "3:freezer:/job\n"), "");
}

TEST(FindControllers, SaysThatNothingIsMounted) {
  for (const ControllerPlace& place : FindControllers("", "")) {
    EXPECT_EQ(place.version, 0);
    EXPECT_NE(place.reason.find("no cgroup hierarchy"), std::string::npos);
  }
}

TEST(Cgroup, SweepsOnlyWhatDeadProcessesLeft) {
  const ControllerPlace place = FindControllers()[0];
  if (place.version == 0) GTEST_SKIP() << place.reason;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const std::string dead = place.parent + "/caisson." + std::to_string(child) + "-1.0";
  const std::string reused = place.parent + "/caisson." + std::to_string(::getpid()) + "-1.0";
  const std::string ours = place.parent + "/" + Cgroup::NamePrefix() + "sweep";
  const std::string foreign = place.parent + "/caisson.of-somebody-else";
  const std::string elsewhere = place.parent + "/caisson." + std::to_string(child) + "-1-1.0";
  for (const auto& group : {ours, foreign, elsewhere}) fs::create_directory(group);
  bool told = false;
  for (int i = 0; i < 20 && !told; ++i) {  // another program's sweep may come first
    for (const auto& group : {dead, reused}) fs::create_directory(group);
    told = std::ranges::count(Cgroup::Sweep().removed, dead) == 1;
  }
  EXPECT_TRUE(told);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(reused)) << "an earlier process with our pid";
  EXPECT_TRUE(fs::exists(ours));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(elsewhere)) << "a pid of another namespace";
  for (const auto& group : {ours, foreign, elsewhere}) fs::remove(group);
}

TEST(Cgroup, SweepingTellsOfAGroupThatIsStillInUse) {
  const ControllerPlace place = FindControllers()[0];
  if (place.version == 0) GTEST_SKIP() << place.reason;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const std::string group = place.parent + "/caisson." + std::to_string(gone) + "-1.0";
  const pid_t inside = ::fork();
  if (inside == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ASSERT_GT(inside, 1);
  bool entered = false;
  for (int i = 0; i < 100 && !entered; ++i) {  // another program's sweep may come before
    fs::create_directory(group);
    entered = WriteSmallFile(group + "/cgroup.procs", std::to_string(inside)).has_value();
  }
  ASSERT_TRUE(entered);
  const Cgroup::Swept swept = Cgroup::Sweep();
  EXPECT_NE(std::ranges::find(swept.left, group), swept.left.end());
  ::kill(inside, SIGKILL);
  ::waitpid(inside, nullptr, 0);
  for (int i = 0; i < 1000 && fs::exists(group); ++i) {
    Cgroup::Sweep();
    ::usleep(10'000);
  }
  EXPECT_FALSE(fs::exists(group));
}

// A process with a reaper and a group that has a process in it, which dies with it. Writes the
// group's name once all that stands.
[[noreturn]] void Supervise(int ready) {
  const auto reaper = CgroupReaper::Start();
  if (!reaper || !reaper->running()) ::_exit(1);
  const std::string name = Cgroup::NamePrefix() + "reaped";
  Cgroup group = Cgroup::Make(name, {.memory_bytes = 64u << 20});
  const pid_t supervisor = ::getpid();
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (::getppid() == supervisor) ::usleep(10'000);
    ::_exit(0);
  }
  if (!group.Attach(worker)) ::_exit(2);
  (void)!::write(ready, name.c_str(), name.size());
  for (;;) ::pause();
}

TEST(CgroupReaper, RemovesTheGroupsOfAProcessThatIsKilled) {
  const ControllerPlace place = FindControllers()[0];
  if (place.version == 0) GTEST_SKIP() << place.reason;
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) Supervise(pipe->second.get());
  ASSERT_GT(supervisor, 1);
  pipe->second.Reset();
  char name[256] = {};
  const ssize_t got = ::read(pipe->first.get(), name, sizeof name - 1);
  const std::string group = place.parent + "/" + name;
  const bool was_there = got > 0 && fs::exists(group);
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  ASSERT_TRUE(was_there);
  for (int i = 0; i < 1000 && fs::exists(group); ++i) ::usleep(10'000);
  EXPECT_FALSE(fs::exists(group));
}

TEST(CgroupReaper, EndsWithItsOwnerAndTouchesNoGroupThen) {
  const ControllerPlace place = FindControllers()[0];
  if (place.version == 0) GTEST_SKIP() << place.reason;
  const Cgroup group = Cgroup::Make(Cgroup::NamePrefix() + "kept", {.memory_bytes = 64u << 20});
  {
    auto reaper = CgroupReaper::Start();
    ASSERT_TRUE(reaper) << reaper.error().message;
    EXPECT_TRUE(reaper->running());
  }
  // As process 1 of a namespace we get the orphans of other tests, too; they have ended or soon
  // will.
  int left = 0;
  for (int i = 0; i < 1000 && (left = ::waitpid(-1, nullptr, WNOHANG)) >= 0; ++i) {
    if (left == 0) ::usleep(10'000);
  }
  EXPECT_EQ(left, -1);
  EXPECT_TRUE(fs::exists(group.directories().at(0)));
}

TEST(Cgroup, LimitsWhatItSaysAndGoesAway) {
  const ControllerPlace place = FindControllers()[0];
  if (place.version == 0) GTEST_SKIP() << place.reason;
  std::string directory;
  {
    const Cgroup group = Cgroup::Make(Cgroup::NamePrefix() + "limits", {.memory_bytes = 64u << 20});
    ASSERT_FALSE(group.directories().empty());
    directory = place.parent + "/" + Cgroup::NamePrefix() + "limits";
    const auto limit =
        ReadSmallFile(directory + (place.version == 1 ? "/memory.limit_in_bytes" : "/memory.max"));
    ASSERT_TRUE(limit) << limit.error().message;
    EXPECT_EQ(*limit, "67108864\n");
    EXPECT_EQ(group.OomKills(), 0u);
  }
  EXPECT_FALSE(fs::exists(directory));
}

}  // namespace
}  // namespace caisson::os
