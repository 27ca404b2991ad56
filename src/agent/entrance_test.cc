// SPDX-License-Identifier: Apache-2.0
// An agent that lets its own socket go, as before the kernel below it is written to a file.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;

class EntranceTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/caisson-entrance-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path_ = folder_ + "/agent.sock";
    agent_ = std::make_unique<AgentUnderTest>(std::vector<std::string>{"--listen-path", path_});
    ASSERT_TRUE(Await());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  os::UniqueFd Connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fd.Reset();
    }
    return fd;
  }
  bool Await() const {
    for (int i = 0; i < 2000; ++i) {
      if (Connect().valid()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  void Wake() const { std::ofstream(path_ + ".wake").flush(); }
  Heard Do(const std::string& script) const {
    auto exec = Exec::Start(Connect(), {.command = Shell(script)});
    if (!exec) return {.status = exec.error()};
    return Listen(*exec);
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<AgentUnderTest> agent_;
};

TEST_F(EntranceTest, LetsItsSocketAndEveryConnectionGoUntilItIsWoken) {
  const auto watch = Watch::Start(Connect());
  ASSERT_TRUE(watch);
  const auto process = StartProcess(Connect(), Shell("while :; do sleep 0.05; done"));
  ASSERT_TRUE(process) << process.error().message;
  for (int round = 0; round < 3; ++round) {
    const auto gone = LetGo(Connect());
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_FALSE(Connect().valid());
    Wake();
    ASSERT_TRUE(Await());
    EXPECT_FALSE(std::filesystem::exists(path_ + ".wake"));
    EXPECT_EQ(Do("echo there").output, "there\n");
    const auto view = GetProcess(Connect(), process->process_id);
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(view->state, process->state) << "what was started lives on";
  }
}

TEST_F(EntranceTest, KeepsItsSocketWhileSomebodyHasACommandOrAFileOpen) {
  {
    auto exec = Exec::Start(Connect(), {.command = Shell("echo begun; cat"), .stdin_open = true});
    ASSERT_TRUE(exec);
    ASSERT_EQ(exec->Next()->kind, ExecEvent::Kind::kStarted);
    ASSERT_EQ(exec->Next()->data, "begun\n");
    const auto gone = LetGo(Connect());
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, errors::kAgentBusy) << gone.error().message;
    EXPECT_NE(gone.error().message.find("1 commands"), std::string::npos) << gone.error().message;
    ASSERT_TRUE(exec->WriteStdin("on\n"));
    // Nothing else of it comes but heartbeats.
    auto next = exec->Next();
    while (next && next->kind == ExecEvent::Kind::kHeartbeat) next = exec->Next();
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(next->kind, ExecEvent::Kind::kStdout) << next->exit_code << " " << next->signal;
    EXPECT_EQ(next->data, "on\n");
  }
  auto upload = Upload::Start(Connect(), {.path = folder_ + "/file"});
  ASSERT_TRUE(upload);
  EXPECT_EQ(LetGo(Connect()).error().code, errors::kAgentBusy);
  ASSERT_TRUE(upload->Commit());
}

TEST_F(EntranceTest, BelongsToAgentsThatMadeTheirSocketThemselves) {
  const AgentUnderTest other;
  EXPECT_EQ(LetGo(other.Connect()).error().code, errors::kAgentBadRequest);
  EXPECT_TRUE(Ping(other.Connect()));
}

TEST_F(EntranceTest, NamesItsMachineOnlyByAValidId) {
  const auto before = Info(Connect());
  EXPECT_FALSE(Identify(Connect(), {.host_name = "x", .machine_id = "short"}));
  const auto after = Info(Connect());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->boot_id, after->boot_id);
}

}  // namespace
}  // namespace caisson::agent
