// SPDX-License-Identifier: Apache-2.0
// Cgroups of this host, with the freezer of version 1 where there is one: a hybrid host would never
// use it.
#include "machine/groups.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "errors/machine.h"
#include "os/cgroup.h"

namespace caisson::machine {
namespace {

using namespace std::chrono_literals;

std::string Name() { return "caisson-test-" + std::to_string(::getpid()); }

class GroupsOfHost : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "groups are made by root";
    auto planned = Groups::Plan(Name());
    if (!planned) GTEST_SKIP() << planned.error().message;
    groups_ = *std::move(planned);
  }
  void TearDown() override { EXPECT_TRUE(groups_.Remove(5s)); }

  // A process in the agent's groups that counts.
  pid_t StartInside() {
    auto tasks = groups_.OpenAgentTasks();
    EXPECT_TRUE(tasks);
    count_ = static_cast<volatile long*>(
        ::mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t child = ::fork();
    if (child != 0) {
      while (*count_ == 0) std::this_thread::sleep_for(1ms);
      return child;
    }
    for (const os::UniqueFd& task : *tasks) {
      if (::write(task.get(), "0", 1) != 1) ::_exit(1);
    }
    for (;; ::usleep(100)) *count_ = *count_ + 1;
  }
  bool Counts() const {
    const long before = *count_;
    std::this_thread::sleep_for(100ms);
    return *count_ != before;
  }

  volatile long* count_ = nullptr;
  Groups groups_;
};

TEST_F(GroupsOfHost, AreRememberedByTheirRecordAndByNoOther) {
  const json::Value record = groups_.ToJson();
  const auto back = Groups::FromJson(record, Name());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->ToJson(), record);
  const auto foreign = Groups::FromJson(record, "caisson-other");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, errors::kMachineState);
  for (const char* directory : {"relative/x", "/sys/fs/cgroup/../../etc/x", "/x/y"}) {
    EXPECT_FALSE(
        Groups::FromJson(json::Array{json::Object{{"version", 1}, {"directory", directory}}}, "x"))
        << directory;
  }
}

TEST_F(GroupsOfHost, WhatCannotBeMadeWholeLeavesNothing) {
  ASSERT_TRUE(groups_.Make());
  EXPECT_FALSE(groups_.Make()) << "they are there already";
  EXPECT_TRUE(groups_.Remove(5s));
  EXPECT_TRUE(groups_.Remove(5s)) << "nothing is there";
}

TEST_F(GroupsOfHost, TheFreezerOfVersion1StopsAndKillsToo) {
  const std::string freezer = os::FindFreezerParent();
  if (freezer.empty()) GTEST_SKIP() << "there is none";
  json::Array list;
  const json::Value all = groups_.ToJson();
  for (const json::Value& item : all.as_array()) {
    if (item.Find("version")->as_int() == 1) list.push_back(item);
  }
  list.emplace_back(
      json::Object{{"version", 1}, {"freezer", true}, {"directory", freezer + "/" + Name()}});
  auto old = Groups::FromJson(json::Value(std::move(list)), Name());
  ASSERT_TRUE(old) << old.error().message;
  groups_ = *std::move(old);
  ASSERT_TRUE(groups_.Make());
  ASSERT_TRUE(groups_.Limit({.cpus = 0.5, .memory_bytes = 64u << 20, .pids = 8}));
  const pid_t child = StartInside();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(groups_.Freeze());
    EXPECT_FALSE(Counts());
    ASSERT_TRUE(groups_.Thaw());
    EXPECT_TRUE(Counts());
  }
  ASSERT_TRUE(groups_.Freeze());
  EXPECT_TRUE(groups_.Kill(5s)) << "what is frozen, too";
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

// The agent in groups that a container runtime has made for it, as HaveAgent says.
TEST_F(GroupsOfHost, AnAgentThatIsKilledHasNotSeenItsCommandsDie) {
  constexpr int kMany = 100;  // so that the last is killed well after the first
  const json::Value all = groups_.ToJson();
  const std::string runtimes = "/" + Name();
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(groups_.Make());
    const auto enter = [&all](const std::string& below) {
      for (const json::Value& item : all.as_array()) {
        const std::string directory = item.Find("directory")->as_string() + below;
        if (!item.Find("pids")->as_bool() && !item.Find("memory")->as_bool()) continue;
        ::mkdir(directory.c_str(), 0755);
        if (!os::WriteSmallFile(directory + "/cgroup.procs", "0")) ::_exit(1);
      }
    };
    int told[2];
    ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
    const pid_t agent = ::fork();
    if (agent == 0) {
      for (int i = 0; i < kMany; ++i) {
        if (::fork() != 0) continue;
        enter("/commands");
        (void)!::write(told[1], "+", 1);
        for (;;) ::pause();
      }
      enter(runtimes);
      (void)!::write(told[1], "+", 1);
      ::wait(nullptr);
      (void)!::write(told[1], "!", 1);
      ::_exit(0);
    }
    ::close(told[1]);
    std::string said;
    for (char c = 0; said.size() < kMany + 1 && ::read(told[0], &c, 1) == 1;) said += c;
    ASSERT_TRUE(groups_.Kill(5s));
    for (char c = 0; ::read(told[0], &c, 1) == 1;) said += c;
    EXPECT_EQ(said, std::string(kMany + 1, '+')) << "round " << round;
    ::close(told[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(agent, &status, 0), agent);
    ASSERT_TRUE(groups_.Remove(5s));
  }
}

TEST_F(GroupsOfHost, LimitsAreWhatWasAskedForAndTheAgentHasMore) {
  ASSERT_TRUE(groups_.Make());
  ASSERT_TRUE(groups_.Limit({.cpus = 1.5, .memory_bytes = 64u << 20, .pids = 8}));
  const json::Value all = groups_.ToJson();
  for (const json::Value& item : all.as_array()) {
    const std::string outer = item.Find("directory")->as_string();
    const auto number = [](const std::string& path) {
      return std::stoull(os::ReadSmallFile(path).value_or("0"));
    };
    if (item.Find("pids")->as_bool()) {
      EXPECT_EQ(number(outer + "/commands/pids.max"), 8u);
      EXPECT_GT(number(outer + "/pids.max"), 8u);
    }
    if (item.Find("memory")->as_bool()) {
      const bool first = item.Find("version")->as_int() == 1;
      const char* file = first ? "/memory.limit_in_bytes" : "/memory.max";
      EXPECT_EQ(number(outer + "/commands" + file), 64u << 20);
      EXPECT_GT(number(outer + file), 64u << 20);
    }
  }
}

}  // namespace
}  // namespace caisson::machine
