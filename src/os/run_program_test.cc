// SPDX-License-Identifier: Apache-2.0
#include "os/run_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace caisson::os {
namespace {

TEST(RunProgram, captures_both_streams_apart_and_the_exit_code) {
  auto end = RunProgram({.arguments = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->output, "out\n");
  EXPECT_EQ(end->messages, "err\n");
  EXPECT_EQ(end->status, (ExitStatus{.code = 3, .signal = 0}));
  EXPECT_FALSE(end->succeeded());
}

TEST(RunProgram, passes_arguments_untouched) {
  auto end = RunProgram({.arguments = {"printf", "%s|", "a b", "$HOME", "'; rm", ""}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->output, "a b|$HOME|'; rm||");
}

TEST(RunProgram, sets_and_replaces_variables) {
  ::setenv("CAISSON_TEST_VARIABLE", "before", 1);
  auto end = RunProgram({.arguments = {"sh", "-c", "echo $CAISSON_TEST_VARIABLE"},
                         .variables = {{"CAISSON_TEST_VARIABLE", "after"}}});
  ::unsetenv("CAISSON_TEST_VARIABLE");
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->output, "after\n");
}

TEST(RunProgram, names_a_program_that_does_not_exist) {
  auto end = RunProgram({.arguments = {"caisson-no-such-program"}});
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("caisson-no-such-program"), std::string::npos);
}

TEST(RunProgram, reports_a_start_directory_that_does_not_exist) {
  auto end = RunProgram({.arguments = {"true"}, .directory = "/no/such/directory"});
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("ENOENT"), std::string::npos);
}

TEST(RunProgram, keeps_the_end_of_many_messages_in_whole_lines) {
  auto end = RunProgram({.arguments = {"sh", "-c", "seq 100000 >&2"}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_LE(end->messages.size(), kKeptMessages);
  EXPECT_TRUE(end->messages.ends_with("99999\n100000\n"));
  EXPECT_EQ(end->messages.find('\n'), 5U);
}

TEST(RunProgram, hands_on_messages_line_by_line_while_the_program_runs) {
  std::stop_source source;
  std::vector<std::string> lines;
  const Program program{
      .arguments = {"sh", "-c", "printf 'one\\ntw' >&2; printf 'o\\nlast' >&2; sleep 600"},
      .on_message = [&](std::string_view line) {
        lines.emplace_back(line);
        if (lines.size() == 2) source.request_stop();  // the program still runs
      }};
  auto end = RunProgram(program, source.get_token());
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "last"}));
  EXPECT_EQ(end->messages, "one\ntwo\nlast");
}

TEST(RunProgram, ends_a_program_when_asked_to_stop) {
  std::stop_source source;
  std::jthread asker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    source.request_stop();
  });
  auto end = RunProgram({.arguments = {"sleep", "600"}}, source.get_token());
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->status, (ExitStatus{.code = 0, .signal = SIGTERM}));
}

TEST(RunProgram, does_not_wait_for_a_grandchild_that_keeps_the_streams) {
  auto end = RunProgram({.arguments = {"sh", "-c", "sleep 20 & echo $!"}});
  ASSERT_TRUE(end) << end.error().message;
  const int grandchild = std::atoi(end->output.c_str());
  EXPECT_GT(grandchild, 1);
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

}  // namespace
}  // namespace caisson::os
