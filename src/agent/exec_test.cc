// SPDX-License-Identifier: Apache-2.0
// Commands, through the client and the real agent program as pid 1.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "base/sanitizer.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;
using Kind = ExecEvent::Kind;

// Waits until `condition` holds; false when it does not within ten seconds.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class ExecTest : public testing::Test {
 protected:
  // Whether a process with this word in its command line lives in the machine.
  bool Lives(const std::string& word) {
    const Heard heard = RunIn(agent_, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '" +
                                          word.substr(0, 1) + "''" + word.substr(1) + "'");
    return heard.output != "0\n";
  }

  AgentUnderTest agent_;
};

TEST_F(ExecTest, tells_output_errors_and_exit_code_apart) {
  const Heard heard = RunIn(agent_, "echo out; echo err >&2; exit 3");
  ASSERT_TRUE(heard.exit) << heard.status->message;
  EXPECT_EQ(heard.output, "out\n");
  EXPECT_EQ(heard.errors, "err\n");
  EXPECT_EQ(heard.exit->kind, Kind::kExit);
  EXPECT_EQ(heard.exit->exit_code, 3);
  EXPECT_EQ(heard.exit->signal, 0);
  EXPECT_FALSE(heard.exit->timed_out);
  EXPECT_GT(heard.started, 1);
}

TEST_F(ExecTest, gives_exactly_the_environment_and_directory_that_it_was_told) {
  ExecRequest request{.command = {.argv = {"/usr/bin/env"}, .env = {{"A", "b c"}, {"X", ""}}}};
  EXPECT_EQ(RunIn(agent_, request).output, "A=b c\nX=\n");
  request.command = Shell("pwd");
  EXPECT_EQ(RunIn(agent_, request).output, "/\n");
  request.command.cwd = "/usr/bin";
  EXPECT_EQ(RunIn(agent_, request).output, "/usr/bin\n");
}

TEST_F(ExecTest, looks_the_program_up_in_the_path_of_the_command) {
  ExecRequest request{.command = {.argv = {"true"}, .env = {{"PATH", "/nonexistent:/bin"}}}};
  EXPECT_EQ(RunIn(agent_, request).exit->exit_code, 0);
  request.command.env["PATH"] = "/nonexistent";
  EXPECT_EQ(RunIn(agent_, request).exit->kind, Kind::kFailedToStart);
}

TEST_F(ExecTest, tells_why_a_command_cannot_start) {
  const Heard missing = RunIn(agent_, {.command = {.argv = {"/no/such/program"}}});
  ASSERT_TRUE(missing.exit);
  EXPECT_EQ(missing.exit->kind, Kind::kFailedToStart);
  EXPECT_EQ(missing.exit->error, ENOENT);
  EXPECT_EQ(missing.why, "execute /no/such/program: ENOENT (No such file or directory)");
  const Heard folder = RunIn(agent_, {.command = {.argv = {"true"}, .cwd = "/no/such/folder"}});
  EXPECT_EQ(folder.why,
            "change to the directory /no/such/folder: ENOENT (No such file or directory)");
  const Heard no_program = RunIn(agent_, {.command = {.argv = {"/etc/passwd"}}});
  EXPECT_EQ(no_program.exit->error, EACCES);
  const Heard nothing = RunIn(agent_, ExecRequest{});
  ASSERT_TRUE(nothing.status);
  EXPECT_EQ(nothing.status->code, errors::kAgentBadRequest);
}

TEST_F(ExecTest, has_an_input_at_its_end_unless_one_is_given) {
  EXPECT_EQ(RunIn(agent_, "cat; echo end").output, "end\n");
}

TEST_F(ExecTest, streams_input_in_and_output_out_at_once) {
  std::string text;
  while (text.size() < 5'000'000) text += "a line of the text that goes through cat\n";
  const Heard heard = RunIn(agent_, {.command = Shell("cat"), .stdin_open = true}, text);
  EXPECT_EQ(heard.output.size(), text.size());
  EXPECT_TRUE(heard.output == text);
}

TEST_F(ExecTest, does_not_mind_a_command_that_leaves_its_input_unread) {
  const std::string text(3'000'000, 'x');
  const Heard heard = RunIn(agent_, {.command = Shell("exit 7"), .stdin_open = true}, text);
  ASSERT_TRUE(heard.exit) << heard.status->message;
  EXPECT_EQ(heard.exit->exit_code, 7);
}

TEST_F(ExecTest, tells_a_death_by_signal_as_such) {
  const Heard heard = RunIn(agent_, "kill -SEGV $$");
  ASSERT_TRUE(heard.exit);
  EXPECT_EQ(heard.exit->signal, SIGSEGV);
  EXPECT_FALSE(heard.exit->timed_out);
}

TEST_F(ExecTest, runs_in_a_session_and_process_group_of_its_own_with_ordinary_signals) {
  const Heard heard = RunIn(agent_,
                            "cut -d' ' -f1,5,6 /proc/$$/stat; echo $$; grep -E 'Sig(Blk|Ign)' "
                            "/proc/self/status | tr -d '\\n'");
  const std::string pid = std::to_string(heard.started);
  EXPECT_TRUE(heard.output.starts_with(pid + " " + pid + " " + pid + "\n" + pid + "\n"))
      << heard.output;
  EXPECT_NE(heard.output.find("SigBlk:\t0000000000000000SigIgn:\t0000000000000000"),
            std::string::npos)
      << heard.output;
}

TEST_F(ExecTest, inherits_no_descriptor_of_the_agent) {
  EXPECT_EQ(RunIn(agent_, "exec ls /proc/self/fd").output,
            "0\n1\n2\n3\n");  // 3: ls reads the folder
}

TEST_F(ExecTest, ends_the_command_when_its_time_is_over) {
  const Heard heard =
      RunIn(agent_, {.command = Shell("echo before; sleep 600"), .timeout = milliseconds(300)});
  ASSERT_TRUE(heard.exit);
  EXPECT_TRUE(heard.exit->timed_out);
  EXPECT_EQ(heard.exit->signal, SIGKILL);
  EXPECT_EQ(heard.output, "before\n");
  EXPECT_GE(heard.took, 300ms);
  EXPECT_LT(heard.took, 3s);
}

TEST_F(ExecTest, leaves_nothing_of_a_command_whose_time_is_over) {
  const Heard heard =
      RunIn(agent_, {.command = Shell("setsid sleep 601 & (sleep 602 &) ; timeout 600 sleep 603"),
                     .timeout = milliseconds(300)});
  EXPECT_TRUE(heard.exit->timed_out);
  EXPECT_TRUE(Eventually([this] { return !Lives("sleep 60[123]"); }));
}

TEST_F(ExecTest, kills_everything_of_a_command_whose_connection_closes) {
  {
    auto exec = Exec::Start(
        agent_.Connect(), {.command = Shell("setsid sleep 611 & (setsid sleep 612 &); sleep 613")});
    ASSERT_TRUE(exec);
    EXPECT_TRUE(Eventually([this] { return Lives("sleep 611") && Lives("sleep 612"); }));
  }
  EXPECT_TRUE(Eventually([this] { return !Lives("sleep 61[123]"); }));
}

TEST_F(ExecTest, is_not_held_by_a_background_child_that_keeps_the_pipe) {
  const Heard heard = RunIn(agent_, "sleep 621 & echo started");
  ASSERT_TRUE(heard.exit);
  EXPECT_EQ(heard.exit->exit_code, 0);
  EXPECT_EQ(heard.output, "started\n");
  EXPECT_LT(heard.took, 1s);
  EXPECT_TRUE(Lives("sleep 621"));  // what a command leaves behind on purpose lives on
}

TEST_F(ExecTest, is_not_held_by_a_background_child_that_writes_without_end) {
  const Heard heard = RunIn(agent_, "yes background & exit 4");
  ASSERT_TRUE(heard.exit);
  EXPECT_EQ(heard.exit->exit_code, 4);
  EXPECT_LT(heard.took, 1s);
  RunIn(agent_, "pkill yes");
}

TEST_F(ExecTest, does_not_break_the_pipe_of_what_a_command_left_behind) {
  const std::string file = agent_.folder() + "/alive";
  RunIn(agent_, "(sleep 0.7; echo to nobody; echo to nobody; touch " + file + ") & exit 0");
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(file); }));
}

TEST_F(ExecTest, never_invents_an_end_when_the_agent_dies) {
  auto exec = Exec::Start(agent_.Connect(), {.command = Shell("sleep 600")});
  ASSERT_TRUE(exec);
  ASSERT_EQ(exec->Next()->kind, Kind::kStarted);
  agent_.process().Kill();
  const Heard heard = Listen(*exec);
  ASSERT_FALSE(heard.exit);
  EXPECT_EQ(heard.status->code, errors::kAgentConnectionLost);
}

TEST_F(ExecTest, knows_the_end_of_a_command_whose_supervisor_was_killed) {
  // At once, too: before the supervisor can say that the command has started, or has ended.
  for (int i = 0; i < 50; ++i) {
    const Heard heard = RunIn(agent_, "kill -9 $PPID; exit 9");
    ASSERT_TRUE(heard.exit) << heard.status->message;
    ASSERT_EQ(heard.exit->kind, Kind::kExit) << heard.why;
    ASSERT_EQ(heard.exit->exit_code, 9);
  }
}

TEST_F(ExecTest, kills_everything_of_a_command_whose_supervisor_was_killed) {
  auto bystander = Exec::Start(agent_.Connect(), {.command = Shell("setsid sleep 634; exit")});
  auto other = Exec::Start(agent_.Connect(), {.command = Shell("kill -9 $PPID; sleep 635; exit")});
  {
    auto exec =
        Exec::Start(agent_.Connect(), {.command = Shell("setsid sleep 631 & (setsid sleep 632 &) ;"
                                                        "kill -9 $PPID; sleep 633")});
    ASSERT_TRUE(exec);
    for (const char* sleeper : {"sleep 631", "sleep 632", "sleep 633", "sleep 634", "sleep 635"}) {
      EXPECT_TRUE(Eventually([&] { return Lives(sleeper); })) << sleeper;
    }
  }
  EXPECT_TRUE(Eventually([this] { return !Lives("sleep 63[123]"); }));
  EXPECT_TRUE(Lives("sleep 634"));
  EXPECT_TRUE(Lives("sleep 635"));
}

TEST_F(ExecTest, leaves_nothing_of_a_command_without_supervisor_whose_time_is_over) {
  const Heard heard =
      RunIn(agent_, {.command = Shell("setsid sleep 641 & kill -9 $PPID; sleep 642"),
                     .timeout = milliseconds(300)});
  EXPECT_TRUE(heard.exit->timed_out);
  EXPECT_TRUE(Eventually([this] { return !Lives("sleep 64[12]"); }));
}

TEST_F(ExecTest, goes_on_after_a_command_has_killed_all_that_it_can) {
  for (int round = 0; round < 5; ++round) {
    RunIn(agent_, "kill -9 -1");
    Heard heard = RunIn(agent_, "echo again");
    // What starts commands was killed too; until the agent has seen that, it says so.
    while (heard.why.ends_with("was killed; try again")) heard = RunIn(agent_, "echo again");
    EXPECT_EQ(heard.why, "");
    EXPECT_EQ(heard.output, "again\n");
    ASSERT_TRUE(heard.exit) << (heard.status ? heard.status->message : "no status");
    EXPECT_EQ(heard.exit->exit_code, 0);
  }
}

TEST_F(ExecTest, reaps_what_has_lost_its_parents) {
  RunIn(agent_, "for i in 1 2 3 4 5 6 7 8; do (sh -c 'sleep 0.1 & exit' &); done");
  EXPECT_TRUE(Eventually(
      [this] { return RunIn(agent_, "cat /proc/[0-9]*/stat | grep -c ') Z '").output == "0\n"; }));
}

TEST_F(ExecTest, lets_a_slow_reader_stall_only_its_own_command) {
  auto slow = Exec::Start(agent_.Connect(), {.command = Shell("yes")});
  ASSERT_TRUE(slow);
  std::this_thread::sleep_for(200ms);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(RunIn(agent_, "echo quick").output, "quick\n");
  // What waits for the slow one is bounded: the pipe, the socket and less than a megabyte.
  if (!kAddressSanitizer && !kThreadSanitizer) {
    EXPECT_LT(AgentUnderTest::PrivateMemory(agent_.process().pid()), 8 * 1024);
  }
}

TEST_F(ExecTest, survives_clients_that_leave_with_output_unread) {
  for (int i = 0; i < 40; ++i) {
    auto exec =
        Exec::Start(agent_.Connect(),
                    {.command = Shell("head -c " + std::to_string(10'000 * i) + " /dev/zero")});
    ASSERT_TRUE(exec);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(RunIn(agent_, "echo there").output, "there\n");
}

TEST_F(ExecTest, passes_signals_to_the_group) {
  auto exec = Exec::Start(agent_.Connect(),
                          {.command = Shell("trap 'echo got it; exit 5' USR1; echo ready; "
                                            "while :; do sleep 0.05; done")});
  ASSERT_TRUE(exec);
  while (exec->Next()->kind != Kind::kStdout) continue;
  ASSERT_TRUE(exec->Signal(SIGUSR1));
  const Heard heard = Listen(*exec);
  EXPECT_EQ(heard.output, "got it\n");
  EXPECT_EQ(heard.exit->exit_code, 5);
}

TEST_F(ExecTest, gives_a_terminal_with_its_size_and_one_stream) {
  ExecRequest request{.command = Shell("test -t 0 && test -t 1 && test -t 2 && stty size; "
                                       "echo err >&2; ps -o tpgid= -p $$ | tr -d ' '; echo $$")};
  request.command.pty = Pty{.rows = 33, .columns = 99};
  const Heard heard = RunIn(agent_, request);
  const std::string pid = std::to_string(heard.started);
  EXPECT_EQ(heard.output, "33 99\r\nerr\r\n" + pid + "\r\n" + pid + "\r\n");
  EXPECT_EQ(heard.errors, "");
  EXPECT_EQ(heard.exit->exit_code, 0);
}

TEST_F(ExecTest, resizes_a_terminal_and_types_into_it) {
  ExecRequest request{.command = Shell("stty -echo; echo ready; read line; stty size; echo $line; "
                                       "cat; echo end"),
                      .stdin_open = true};
  request.command.pty = Pty{};
  auto exec = Exec::Start(agent_.Connect(), request);
  ASSERT_TRUE(exec);
  while (exec->Next()->kind != Kind::kStdout) continue;
  ASSERT_TRUE(exec->Resize({.rows = 50, .columns = 120}));
  ASSERT_TRUE(exec->WriteStdin("hello\n"));
  ASSERT_TRUE(exec->CloseStdin());
  const Heard heard = Listen(*exec);
  EXPECT_EQ(heard.output, "50 120\r\nhello\r\nend\r\n");
}

TEST_F(ExecTest, interrupts_the_foreground_of_a_terminal) {
  ExecRequest request{.command = {.argv = {"bash", "-ic", "echo ready; sleep 600; echo status $?"},
                                  .env = {{"PATH", "/usr/bin:/bin"}, {"PS1", ""}},
                                  .pty = Pty{}},
                      .stdin_open = true};
  auto exec = Exec::Start(agent_.Connect(), request);
  ASSERT_TRUE(exec);
  std::string output;
  while (output.find("ready") == std::string::npos) output += exec->Next()->data;
  std::this_thread::sleep_for(300ms);
  ASSERT_TRUE(exec->WriteStdin("\x03"));
  const Heard heard = Listen(*exec);
  ASSERT_TRUE(heard.exit);
  EXPECT_LT(heard.took, 5s);
}

TEST_F(ExecTest, sends_heartbeats_while_nothing_else_happens) {
  auto exec = Exec::Start(agent_.Connect(), {.command = Shell("sleep 600")});
  ASSERT_TRUE(exec);
  EXPECT_EQ(exec->Next()->kind, Kind::kStarted);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(exec->Next(100ms)->kind, Kind::kHeartbeat);  // none of the agent's: the wait is over
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(exec->Next()->kind, Kind::kHeartbeat);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

TEST_F(ExecTest, ends_for_another_thread_that_cancels_it) {
  auto exec = Exec::Start(agent_.Connect(), {.command = Shell("sleep 631")});
  ASSERT_TRUE(exec);
  ASSERT_EQ(exec->Next()->kind, Kind::kStarted);
  std::jthread canceller([&] {
    std::this_thread::sleep_for(100ms);
    exec->Cancel();
  });
  const auto event = exec->Next();
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, errors::kAgentConnectionLost);
  EXPECT_TRUE(Eventually([this] { return !Lives("sleep 631"); }));
}

TEST_F(ExecTest, takes_large_arguments_and_environments) {
  ExecRequest request{.command = Shell("echo ${#A}; echo ${#1}")};
  request.command.argv.insert(request.command.argv.end(), {"name", std::string(100'000, 'x')});
  request.command.env["A"] = std::string(100'000, 'y');
  EXPECT_EQ(RunIn(agent_, request).output, "100000\n100000\n");
  request.command.argv.back() = std::string(3'000'000, 'x');
  const Heard heard = RunIn(agent_, request);
  EXPECT_EQ(heard.exit->kind, Kind::kFailedToStart);
  EXPECT_EQ(heard.exit->error, E2BIG);
}

TEST_F(ExecTest, runs_many_commands_at_once) {
  std::vector<Exec> running;
  for (int i = 0; i < 100; ++i) {
    auto exec =
        Exec::Start(agent_.Connect(), {.command = Shell("sleep 0.2; echo " + std::to_string(i))});
    ASSERT_TRUE(exec);
    running.push_back(*std::move(exec));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Listen(running[i]).output, std::to_string(i) + "\n");
}

TEST_F(ExecTest, refuses_what_is_no_request_and_goes_on) {
  os::UniqueFd fd = agent_.Connect();
  ASSERT_EQ(::write(fd.get(), "\xff\xff\xff\xff\x03", 5), 5);
  Connection connection(std::move(fd));
  const auto answer = connection.Expect(FrameType::kOk);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errors::kAgentBadRequest);
  EXPECT_TRUE(Ping(agent_.Connect()));
}

TEST_F(ExecTest, tells_who_the_agent_is) {
  const auto info = Info(agent_.Connect());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_FALSE(info->version.empty());
  EXPECT_EQ(info->boot_id.size(), 32U);
  EXPECT_EQ(Info(agent_.Connect())->boot_id, info->boot_id);
}

TEST_F(ExecTest, does_not_wait_forever_for_an_agent_that_is_stopped) {
  ASSERT_TRUE(Ping(agent_.Connect()));
  ::kill(agent_.process().pid(), SIGSTOP);
  const auto answer = Ping(agent_.Connect(), 200ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errors::kAgentNoAnswer);
  ::kill(agent_.process().pid(), SIGCONT);
  EXPECT_TRUE(Ping(agent_.Connect()));
}

TEST(AgentOptions, commands_get_no_more_processes_than_they_are_given) {
  AgentUnderTest agent({"--command-processes", "77"});
  EXPECT_EQ(RunIn(agent, "grep -o 'Max processes *77 *77' /proc/self/limits | tr -d ' '").output,
            "Maxprocesses7777\n");
}

TEST(AgentOptions, it_listens_where_it_is_told_and_takes_the_place_of_a_socket_that_was_left) {
  char path[] = "/tmp/caisson-agent-listens-XXXXXX";
  ::close(::mkstemp(path));
  for (int life = 0; life < 2; ++life) {
    const AgentUnderTest agent({"--listen-path", path});
    const auto connect = [&path] {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::string(path).copy(address.sun_path, sizeof address.sun_path - 1);
      os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto* name = reinterpret_cast<const sockaddr*>(&address);
      return ::connect(fd.get(), name, sizeof address) == 0 ? std::move(fd) : os::UniqueFd();
    };
    os::UniqueFd connection;
    EXPECT_TRUE(Eventually([&] { return (connection = connect()).valid(); }));
    EXPECT_TRUE(Ping(std::move(connection)));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace caisson::agent
