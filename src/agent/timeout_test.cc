// SPDX-License-Identifier: Apache-2.0
// timeout(1) as the agent's program has it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "os/run_program.h"

namespace caisson::agent {
namespace {

class TimeoutTest : public testing::Test {
 protected:
  TimeoutTest() {
    char pattern[] = "/tmp/caisson-timeout-test-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    std::filesystem::create_symlink(CAISSON_BINARY_DIR "/bin/caisson-agent", folder_ + "/timeout");
  }
  ~TimeoutTest() override { std::filesystem::remove_all(folder_); }

  // `arguments` are a shell's words.
  os::ProgramEnd RunTimeout(const std::string& arguments) {
    const auto begin = std::chrono::steady_clock::now();
    auto end =
        os::RunProgram({.arguments = {"sh", "-c", "exec " + folder_ + "/timeout " + arguments}});
    took_ = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(end) << end.error().message;
    return *std::move(end);
  }
  int Code(const std::string& arguments) { return RunTimeout(arguments).status.code; }

  std::string folder_;
  std::chrono::duration<double> took_{0};
};

TEST_F(TimeoutTest, tells_the_commands_own_status_when_it_ends_in_time) {
  EXPECT_EQ(Code("10 true"), 0);
  EXPECT_EQ(Code("10 sh -c 'exit 7'"), 7);
  EXPECT_EQ(RunTimeout("10 echo a 'b c'").output, "a b c\n");
  EXPECT_LT(took_.count(), 5);
}

TEST_F(TimeoutTest, exits_with_124_whatever_the_signal_was) {
  EXPECT_EQ(Code("0.2 sleep 60"), 124);
  EXPECT_EQ(Code("--signal=KILL 0.2 sleep 60"), 124);
  EXPECT_EQ(Code("-s 9 0.2 sleep 60"), 124);
  EXPECT_EQ(Code("-s sigint 0.2 sleep 60"), 124);
  EXPECT_EQ(Code("--kill-after 0.2 0.2 sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'"), 124);
  EXPECT_LT(took_.count(), 5);
}

TEST_F(TimeoutTest, preserves_the_status_when_told_so) {
  EXPECT_EQ(Code("--preserve-status 0.2 sleep 60"), 128 + SIGTERM);
  EXPECT_EQ(Code("--preserve-status -s KILL 0.2 sleep 60"), 128 + SIGKILL);
  EXPECT_EQ(Code("--preserve-status 0.2 sh -c 'trap \"exit 3\" TERM; sleep 60 & wait'"), 3);
}

TEST_F(TimeoutTest, lets_the_command_end_itself_on_the_signal) {
  const auto end = RunTimeout("0.2 sh -c 'trap \"echo bye; exit 3\" TERM; sleep 60 & wait'");
  EXPECT_EQ(end.output, "bye\n");
  EXPECT_EQ(end.status.code, 124);
}

TEST_F(TimeoutTest, ends_the_whole_group_but_in_the_foreground_only_the_command) {
  // With all gone, nobody keeps the pipe; RunProgram would not wait for it, so cat does.
  EXPECT_EQ(os::RunProgram({.arguments = {"sh", "-c",
                                          folder_ + "/timeout -s KILL 0.3 sh -c "
                                                    "'sleep 61 & sleep 62' | cat; echo over"}})
                ->output,
            "over\n");
  const auto end =
      RunTimeout("--foreground 0.3 sh -c 'echo $(ps -o pgid= -p $$) $(ps -o pgid= -p $PPID)'");
  const std::size_t space = end.output.find(' ');
  EXPECT_EQ(end.output.substr(0, space), end.output.substr(space + 1, space));
}

TEST_F(TimeoutTest, reads_durations_with_suffixes) {
  EXPECT_EQ(Code("0.003m sleep 60"), 124);
  EXPECT_EQ(Code("0.00005h sleep 60"), 124);
  EXPECT_EQ(Code("0.000002d sleep 60"), 124);
  EXPECT_EQ(Code("0.2s sleep 60"), 124);
  EXPECT_EQ(Code("1e-1 sleep 60"), 124);
  EXPECT_EQ(Code("0 sleep 0.1"), 0);  // none
  EXPECT_EQ(Code("inf true"), 0);
  EXPECT_EQ(Code("99999999999d true"), 0);
}

TEST_F(TimeoutTest, fails_with_125_when_it_cannot_be_what_was_meant) {
  for (const char* wrong :
       {"", "1", "x true", "-1 true", "1y true", "1sm true", "-s NONE 1 true", "-s 1000 1 true",
        "--no-such-option 1 true", "-k x 1 true", "nan true"}) {
    const auto end = RunTimeout(wrong);
    EXPECT_EQ(end.status.code, 125) << wrong;
    EXPECT_NE(end.messages.find("timeout: "), std::string::npos) << wrong;
  }
  EXPECT_EQ(Code("--help"), 0);
  EXPECT_EQ(Code("--version"), 0);
}

TEST_F(TimeoutTest, tells_what_cannot_be_executed_from_what_is_not_found) {
  EXPECT_EQ(Code("1 /no/such/program"), 127);
  EXPECT_EQ(Code("1 /etc/passwd"), 126);
}

TEST_F(TimeoutTest, dies_as_the_command_died) {
  EXPECT_EQ(RunTimeout("10 sh -c 'kill -SEGV $$'").status.signal, SIGSEGV);
}

TEST_F(TimeoutTest, passes_on_what_asks_it_to_end) {
  const auto end =
      RunTimeout("10 sh -c 'trap \"echo got it; exit 4\" TERM; kill -TERM $PPID; sleep 60 & wait'");
  EXPECT_EQ(end.output, "got it\n");
  EXPECT_EQ(end.status.code, 4);
}

TEST_F(TimeoutTest, takes_the_command_along_when_it_is_killed_itself) {
  const auto end = RunTimeout("10 sh -c 'echo $$; kill -KILL $PPID; sleep 60'");
  EXPECT_EQ(end.status.signal, SIGKILL);
  const int pid = std::atoi(end.output.c_str());
  ASSERT_GT(pid, 1);
  for (int i = 0; i < 500 && ::kill(pid, 0) == 0; ++i) ::usleep(10'000);
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(TimeoutTest, tells_of_signals_when_asked_to) {
  EXPECT_NE(
      RunTimeout("-v -s INT 0.1 sleep 60").messages.find("sending signal INT to command 'sleep'"),
      std::string::npos);
}

}  // namespace
}  // namespace caisson::agent
