// SPDX-License-Identifier: Apache-2.0
// The agent beside commands that take all they can get, in cgroups as a driver gives them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "base/sanitizer.h"
#include "errors/agent.h"
#include "os/cgroup.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;
using Kind = ExecEvent::Kind;

class HostileTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kPids = 64;

  HostileTest()
      : group_(os::Cgroup::Make(os::Cgroup::NamePrefix() + "agent-test",
                                {.memory_bytes = 64u << 20, .pids = kPids})) {}

  void SetUp() override {
    for (const auto& refused : group_.refused()) {
      if (refused.controller != os::Controller::kCpu) {
        GTEST_SKIP() << os::ControllerName(refused.controller) << ": " << refused.reason;
      }
    }
    std::vector<os::UniqueFd> files;
    std::vector<int> inherited;
    std::string numbers;
    for (const std::string& directory : group_.directories()) {
      files.emplace_back(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
      ASSERT_TRUE(files.back().valid()) << directory;
      numbers += (numbers.empty() ? "" : ",") + std::to_string(4 + inherited.size());
      inherited.push_back(files.back().get());
    }
    agent_ = std::make_unique<AgentUnderTest>(std::vector<std::string>{"--cgroup-procs", numbers},
                                              inherited);
  }
  Heard Do(const std::string& script) { return RunIn(*agent_, script); }
  bool CanRun() {
    for (int i = 0; i < 200; ++i) {
      if (Do("echo there").output == "there\n") return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }

  os::Cgroup group_;  // outlives what is in it
  std::unique_ptr<AgentUnderTest> agent_;
};

TEST_F(HostileTest, runs_commands_in_their_cgroups_and_stays_outside) {
  const std::string name = "agent-test";
  const Heard command = Do("cat /proc/self/cgroup");
  const Heard agent = Do("cat /proc/1/cgroup");
  EXPECT_NE(command.output.find(name), std::string::npos) << command.output;
  EXPECT_EQ(agent.output.find(name), std::string::npos) << agent.output;
}

TEST_F(HostileTest, answers_while_a_command_takes_every_process_there_is) {
  {
    // `command` keeps the shell alive when it can't fork, so no process becomes free by its end.
    auto bomb = Exec::Start(agent_->Connect(),
                            {.command = Shell("while :; do command eval 'sleep 100 &'; done")});
    ASSERT_TRUE(bomb);
    Heard refused;
    for (int i = 0; i < 1000 && refused.why.empty(); ++i) {  // until the bomb has filled all
      std::this_thread::sleep_for(50ms);
      refused = Do("true");
    }
    ASSERT_TRUE(refused.exit);
    EXPECT_EQ(refused.exit->kind, Kind::kFailedToStart);
    EXPECT_EQ(refused.exit->error, EAGAIN) << refused.why;
    EXPECT_TRUE(Ping(agent_->Connect()));
    EXPECT_TRUE(Stat(agent_->Connect(), {"/etc"}));
  }
  EXPECT_TRUE(CanRun());  // nothing of the bomb is left
}

TEST_F(HostileTest, ends_a_fork_bomb_with_its_time) {
  const Heard heard =
      RunIn(*agent_, {.command = {.argv = {"bash", "-c", ":(){ :|:& };: ; sleep 600"},
                                  .env = {{"PATH", "/usr/bin:/bin"}}},
                      .timeout = 1s});
  ASSERT_TRUE(heard.exit) << heard.status->message;
  EXPECT_EQ(heard.exit->kind, Kind::kExit);
  EXPECT_TRUE(CanRun());
}

TEST_F(HostileTest, tells_of_a_command_that_ran_out_of_memory_as_killed_and_lives_on) {
  const Heard heard = Do("exec tail /dev/zero");
  ASSERT_TRUE(heard.exit) << heard.status->message;
  EXPECT_EQ(heard.exit->signal, SIGKILL);
  EXPECT_FALSE(heard.exit->timed_out);
  EXPECT_TRUE(CanRun());
}

TEST(Outputs, of_the_agent_are_nobodys_to_write) {
  if (::geteuid() != 0) GTEST_SKIP() << "root sees what the agent has open";
  AgentUnderTest agent;
  for (const char* path : {"/proc/1/fd/1", "/proc/1/fd/2", "/proc/2/fd/1", "/proc/2/fd/2"}) {
    EXPECT_EQ(RunIn(agent, std::string("readlink ") + path).output, "/dev/null\n") << path;
  }
}

TEST(Reserves, are_the_agents_alone) {
  AgentUnderTest agent;
  EXPECT_EQ(RunIn(agent, "cat /proc/self/oom_score_adj").output, "0\n");
  EXPECT_LE(std::stoi(RunIn(agent, "cat /proc/1/oom_score_adj").output), 0);
  EXPECT_EQ(RunIn(agent, "nice").output, "0\n");
}

TEST(Reserves, are_small_while_the_agent_is_idle) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer has its own memory";
  AgentUnderTest agent;
  RunIn(agent, "true");
  EXPECT_LT(AgentUnderTest::PrivateMemory(agent.process().pid()), 1024);
}

TEST(Reserves, cannot_be_joined_to_a_cgroup_that_is_none) {
  const os::UniqueFd none(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  AgentUnderTest agent({"--cgroup-procs", "4"}, {none.get()});
  const auto status = agent.process().Wait(10s);
  ASSERT_TRUE(status);  // and no command ever runs outside of its cgroup
  EXPECT_EQ(status->code, 1);
}

}  // namespace
}  // namespace caisson::agent
