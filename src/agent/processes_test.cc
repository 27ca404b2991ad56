// SPDX-License-Identifier: Apache-2.0
// Managed processes, through the client and the real agent program.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "base/sanitizer.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;

class ProcessesTest : public testing::Test {
 protected:
  std::string Start(const Command& command) {
    const auto view = StartProcess(agent_.Connect(), command);
    EXPECT_TRUE(view) << view.error().message;
    return view ? view->process_id : "";
  }
  std::string Start(const std::string& script) { return Start(Shell(script)); }
  ProcessView Wait(const std::string& id, WaitScope scope = WaitScope::kTree) {
    return *WaitProcess(agent_.Connect(), {id, scope, 20s});
  }
  std::vector<ProcessEvent> Events(const std::string& id, std::uint64_t after = 0) {
    std::vector<ProcessEvent> events;
    auto stream = ProcessEvents::Connect(agent_.Connect(), {id, after});
    EXPECT_TRUE(stream);
    for (;;) {
      auto event = stream->Next();
      EXPECT_TRUE(event) << event.error().message;
      if (!event || !*event) return events;
      if ((*event)->type != EventType::kHeartbeat) events.push_back(**std::move(event));
    }
  }
  static std::string Text(const std::vector<ProcessEvent>& events, OutputStream stream) {
    std::string text;
    for (const ProcessEvent& event : events) {
      if (event.type == EventType::kData && event.stream == stream) text += event.data;
    }
    return text;
  }

  AgentUnderTest agent_;
};

TEST_F(ProcessesTest, tells_all_about_a_process) {
  Command command = Shell("sleep 600");
  command.cwd = "/usr";
  const auto started = StartProcess(agent_.Connect(), command);
  ASSERT_TRUE(started) << started.error().message;
  const auto view = GetProcess(agent_.Connect(), started->process_id);
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->process_id.empty());
  EXPECT_FALSE(view->is_pty);
  EXPECT_GT(view->pid, 1);
  EXPECT_EQ(view->state, ProcessState::kRunning);
  EXPECT_FALSE(view->leader_exited);
  EXPECT_FALSE(view->tree_exited);
  EXPECT_GT(view->created_at_ms, 1'700'000'000'000);
  EXPECT_FALSE(view->finished_at_ms || view->exit_code || view->signal || view->foreground);
  EXPECT_EQ(view->argv, command.argv);
  EXPECT_EQ(view->cwd, "/usr");
  EXPECT_EQ(view->output, OutputWindow{});
}

TEST_F(ProcessesTest, lives_on_without_a_connection_and_replays_what_it_said) {
  const std::string id = Start("echo one; echo err >&2; sleep 0.2; echo two; exit 3");
  const ProcessView view = Wait(id);
  EXPECT_EQ(view.state, ProcessState::kExited);
  EXPECT_TRUE(view.leader_exited && view.tree_exited);
  EXPECT_EQ(view.exit_code, 3);
  EXPECT_FALSE(view.signal);
  EXPECT_GE(*view.finished_at_ms, view.created_at_ms + 200);
  const auto events = Events(id);
  EXPECT_EQ(Text(events, OutputStream::kStdout), "one\ntwo\n");
  EXPECT_EQ(Text(events, OutputStream::kStderr), "err\n");
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].seq, i + 1);
  EXPECT_EQ(events.back().type, EventType::kExit);
  EXPECT_EQ(events.back().exit_code, 3);
  EXPECT_EQ(view.output.oldest_seq, 1U);
  EXPECT_EQ(view.output.newest_seq, events.size());
  EXPECT_EQ(view.output.bytes, 12U);
}

TEST_F(ProcessesTest, replays_only_what_comes_after_the_number_that_was_asked_for) {
  const std::string id = Start("for i in 1 2 3; do echo $i; sleep 0.05; done");
  Wait(id);
  const auto all = Events(id);
  const auto rest = Events(id, 2);
  ASSERT_EQ(rest.size(), all.size() - 2);
  EXPECT_EQ(rest.front().seq, 3U);
  EXPECT_TRUE(Events(id, 1'000'000).empty());
}

TEST_F(ProcessesTest, follows_live_and_reconnects_where_it_was) {
  const std::string id = Start("for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done");
  std::uint64_t seq = 0;
  std::string text;
  {
    auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
    ASSERT_TRUE(stream);
    while (text.size() < 4) {
      const auto event = stream->Next();
      ASSERT_TRUE(event && *event);
      text += (*event)->data;
      seq = (*event)->seq;
    }
  }  // disconnecting does not kill
  text += Text(Events(id, seq), OutputStream::kStdout);
  EXPECT_EQ(text, "1\n2\n3\n4\n5\n6\n");
}

TEST_F(ProcessesTest, bounds_the_window_and_tells_how_far_it_reaches_back) {
  const std::string id = Start("yes 'a line of output that fills the window' | head -c 20000000");
  const ProcessView view = Wait(id);
  EXPECT_LE(view.output.bytes, 1u << 20);
  EXPECT_GT(view.output.bytes, 1u << 19);
  EXPECT_GT(view.output.oldest_seq, 1U);
  const auto lost = Events(id);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].type, EventType::kError);
  EXPECT_EQ(lost[0].oldest_available_seq, view.output.oldest_seq);
  EXPECT_FALSE(lost[0].error.empty());
  const auto kept = Events(id, view.output.oldest_seq - 1);
  EXPECT_EQ(kept.front().seq, view.output.oldest_seq);
  EXPECT_EQ(Text(kept, OutputStream::kStdout).size(), view.output.bytes);
}

TEST_F(ProcessesTest, bounds_the_windows_of_all_processes_together) {
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Start("head -c 2000000 /dev/zero"));
  std::uint64_t bytes = 0;
  for (const std::string& id : ids) Wait(id);
  for (const std::string& id : ids) bytes += GetProcess(agent_.Connect(), id)->output.bytes;
  EXPECT_LE(bytes, 8u << 20);
  EXPECT_GT(bytes, 6u << 20);
}

TEST_F(ProcessesTest, tells_a_slow_follower_what_it_has_lost) {
  const std::string id = Start("head -c 50000000 /dev/zero; sleep 600");
  auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
  ASSERT_TRUE(stream);
  std::this_thread::sleep_for(1s);
  std::optional<ProcessEvent> last;
  for (;;) {
    const auto event = stream->Next();
    ASSERT_TRUE(event) << event.error().message;
    if (!*event) break;
    last = **event;
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(last->type, EventType::kError);
  EXPECT_TRUE(last->oldest_available_seq);
}

TEST_F(ProcessesTest, takes_input_in_numbered_pieces_until_it_is_closed) {
  const std::string id = Start("cat; echo end");
  EXPECT_EQ(SendInput(agent_.Connect(), {id, "one "}), 1U);
  EXPECT_EQ(SendInput(agent_.Connect(), {id, "two\n"}), 2U);
  EXPECT_TRUE(CloseInput(agent_.Connect(), id));
  EXPECT_EQ(Wait(id).exit_code, 0);
  EXPECT_EQ(Text(Events(id), OutputStream::kStdout), "one two\nend\n");
  const auto late = SendInput(agent_.Connect(), {id, "late"});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errors::kAgentProcessEnded);
}

TEST_F(ProcessesTest, says_so_when_a_process_does_not_read_its_input) {
  const std::string id = Start("sleep 600");
  const std::string piece(500'000, 'x');
  EXPECT_TRUE(SendInput(agent_.Connect(), {id, piece}));
  EXPECT_TRUE(SendInput(agent_.Connect(), {id, piece}));
  const auto full = SendInput(agent_.Connect(), {id, piece});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, errors::kAgentInputFull);
}

TEST_F(ProcessesTest, passes_signals_and_tells_a_death_by_one) {
  const std::string id = Start("trap 'echo usr1' USR1; echo ready; while :; do read line; done");
  auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
  ASSERT_EQ((*stream->Next())->data, "ready\n");
  ASSERT_TRUE(SignalProcess(agent_.Connect(), {id, SIGUSR1}));
  ASSERT_EQ((*stream->Next())->data, "usr1\n");
  ASSERT_TRUE(SignalProcess(agent_.Connect(), {id, SIGKILL}));
  const ProcessView view = Wait(id);
  EXPECT_EQ(view.signal, SIGKILL);
  EXPECT_FALSE(view.exit_code);
  EXPECT_EQ(Events(id).back().signal, SIGKILL);
  EXPECT_EQ(SignalProcess(agent_.Connect(), {id, SIGUSR1}).error().code,
            errors::kAgentProcessEnded);
  EXPECT_EQ(SignalProcess(agent_.Connect(), {id, 1000}).error().code, errors::kAgentBadRequest);
}

TEST_F(ProcessesTest, waits_for_the_leader_or_the_tree_and_no_longer_than_it_may) {
  const std::string id = Start("(setsid sleep 1 &); exit 5");
  const ProcessView leader = Wait(id, WaitScope::kLeader);
  EXPECT_EQ(leader.exit_code, 5);
  EXPECT_EQ(leader.state, ProcessState::kExited);
  EXPECT_FALSE(leader.tree_exited);
  const auto early = WaitProcess(agent_.Connect(), {id, WaitScope::kTree, 100ms});
  ASSERT_TRUE(early);
  EXPECT_FALSE(early->tree_exited);
  EXPECT_TRUE(Wait(id, WaitScope::kTree).tree_exited);
}

TEST_F(ProcessesTest, terminates_the_whole_tree_gently) {
  const std::string id = Start(
      "trap 'echo bye; exit 6' TERM; (setsid sleep 600 &); echo ready; while :; do sleep 0.05; "
      "done");
  auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
  ASSERT_EQ((*stream->Next())->data, "ready\n");
  const auto view = TerminateProcess(agent_.Connect(), {id, 10s});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->state, ProcessState::kExited);
  EXPECT_EQ(view->exit_code, 6);
  EXPECT_TRUE(view->tree_exited);
  EXPECT_EQ(Text(Events(id), OutputStream::kStdout), "ready\nbye\n");
}

TEST_F(ProcessesTest, kills_the_whole_tree_after_the_grace) {
  const std::string id = Start(
      "trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &); echo ready; "
      "while :; do sleep 1; done");
  auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
  ASSERT_EQ((*stream->Next())->data, "ready\n");
  const auto begin = std::chrono::steady_clock::now();
  std::thread terminator([&] {
    const auto view = TerminateProcess(agent_.Connect(), {id, 500ms});
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(view->signal, SIGKILL);
    EXPECT_TRUE(view->tree_exited);
  });
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(GetProcess(agent_.Connect(), id)->state, ProcessState::kTerminating);
  terminator.join();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 500ms);
  EXPECT_LT(took, 4s);
  EXPECT_TRUE(TerminateProcess(agent_.Connect(), {id, 0ms})->tree_exited);  // again is fine
}

TEST_F(ProcessesTest, kills_after_the_grace_even_when_nobody_waits_for_it) {
  const std::string id = Start("trap '' TERM; echo ready; while :; do sleep 1; done");
  auto stream = ProcessEvents::Connect(agent_.Connect(), {id, 0});
  ASSERT_EQ((*stream->Next())->data, "ready\n");
  {
    Connection connection(agent_.Connect());
    ASSERT_TRUE(connection.SendMessage(FrameType::kProcessTerminate, TerminateRequest{id, 300ms}));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(Wait(id).signal, SIGKILL);
}

TEST_F(ProcessesTest, runs_a_shell_on_a_terminal_and_tells_its_foreground) {
  Command command{.argv = {"bash", "--norc", "-i"},
                  .env = {{"PATH", "/usr/bin:/bin"}, {"PS1", "$ "}, {"TERM", "dumb"}},
                  .pty = Pty{.rows = 20, .columns = 70}};
  const std::string id = Start(command);
  ASSERT_TRUE(SendInput(agent_.Connect(), {id, "stty size; sleep 600\n"}));
  std::optional<Foreground> foreground;
  for (int i = 0;
       i < 500 && !(foreground && !foreground->argv.empty() && foreground->argv[0] == "sleep");
       ++i) {
    std::this_thread::sleep_for(10ms);
    foreground = GetProcess(agent_.Connect(), id)->foreground;
  }
  ASSERT_TRUE(foreground);
  EXPECT_EQ(foreground->argv, (std::vector<std::string>{"sleep", "600"}));
  EXPECT_GT(foreground->pid, 1);
  ASSERT_TRUE(ResizeProcess(agent_.Connect(), {id, {.rows = 44, .columns = 55}}));
  ASSERT_TRUE(SignalProcess(agent_.Connect(), {id, SIGINT}));  // of the foreground, not the shell
  ASSERT_TRUE(SendInput(agent_.Connect(), {id, "stty size; exit 3\n"}));
  const ProcessView view = Wait(id);
  EXPECT_TRUE(view.is_pty);
  EXPECT_EQ(view.exit_code, 3);
  const std::string text = Text(Events(id), OutputStream::kPty);
  EXPECT_NE(text.find("20 70\r\n"), std::string::npos) << text;
  EXPECT_NE(text.find("44 55\r\n"), std::string::npos) << text;
}

TEST_F(ProcessesTest, terminates_a_shell_on_a_terminal_within_the_grace) {
  const std::string id = Start(Command{.argv = {"bash", "--norc", "-i"},
                                       .env = {{"PATH", "/usr/bin:/bin"}, {"PS1", ""}},
                                       .pty = Pty{}});
  std::this_thread::sleep_for(300ms);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(TerminateProcess(agent_.Connect(), {id, 20s})->tree_exited);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(ProcessesTest, refuses_what_a_process_does_not_have) {
  const std::string id = Start("sleep 600");
  EXPECT_EQ(ResizeProcess(agent_.Connect(), {id, {}}).error().code, errors::kAgentNotAPty);
  EXPECT_EQ(GetProcess(agent_.Connect(), "none").error().code, errors::kAgentNoProcess);
  EXPECT_EQ(SendInput(agent_.Connect(), {"none", "x"}).error().code, errors::kAgentNoProcess);
  EXPECT_EQ(WaitProcess(agent_.Connect(), {"none"}).error().code, errors::kAgentNoProcess);
  EXPECT_EQ(TerminateProcess(agent_.Connect(), {"none"}).error().code, errors::kAgentNoProcess);
  EXPECT_EQ(ProcessEvents::Connect(agent_.Connect(), {"none", 0}).error().code,
            errors::kAgentNoProcess);
}

TEST_F(ProcessesTest, tells_why_a_process_cannot_start_and_forgets_it) {
  const auto view = StartProcess(agent_.Connect(), {.argv = {"/no/such/program"}});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, errors::kAgentStartFailed);
  EXPECT_EQ(view.error().message, "execute /no/such/program: ENOENT (No such file or directory)");
  EXPECT_TRUE(ListProcesses(agent_.Connect())->empty());
}

TEST_F(ProcessesTest, refuses_more_arguments_than_it_would_repeat) {
  Command command = Shell("exit 0");
  command.argv.insert(command.argv.end(), 1000, std::string(50, 'x'));
  EXPECT_TRUE(StartProcess(agent_.Connect(), command));
  command.argv.insert(command.argv.end(), 2000, std::string(50, 'x'));
  EXPECT_EQ(StartProcess(agent_.Connect(), command).error().code, errors::kAgentBadRequest);
}

TEST_F(ProcessesTest, lists_what_runs_and_a_bounded_number_of_what_has_ended) {
  const std::string lives = Start("sleep 600");
  for (int i = 0; i < 80; ++i) Wait(Start("exit 0"));
  const auto views = ListProcesses(agent_.Connect());
  ASSERT_TRUE(views);
  EXPECT_EQ(views->front().process_id, lives);
  EXPECT_GE(views->size(), 60U);
  EXPECT_LE(views->size(), 66U);
}

TEST_F(ProcessesTest, never_invents_an_exit_code_when_what_watched_a_process_is_killed_with_it) {
  // The supervisor is killed after it has reaped the leader, but before it can say so: stopped, it
  // cannot. All it knew dies with it.
  const std::string id = Start("exec sleep 600");
  const int pid = GetProcess(agent_.Connect(), id)->pid;
  RunIn(agent_, "p=$(cut -d' ' -f4 /proc/" + std::to_string(pid) + "/stat); kill -9 $p " +
                    std::to_string(pid));
  const ProcessView view = Wait(id);
  // The leader came to the agent as an orphan, which so has its true end.
  EXPECT_EQ(view.signal, SIGKILL);
  EXPECT_TRUE(view.tree_exited);
}

TEST_F(ProcessesTest, ends_what_is_left_of_a_process_whose_supervisor_was_killed) {
  const std::string id = Start("setsid sleep 661 & kill -9 $PPID; exit 3");
  const ProcessView leader = Wait(id, WaitScope::kLeader);
  EXPECT_EQ(leader.exit_code, 3);
  EXPECT_FALSE(leader.tree_exited);
  ASSERT_TRUE(TerminateProcess(agent_.Connect(), {id, 5s}));
  const ProcessView ended = Wait(id);
  EXPECT_TRUE(ended.tree_exited);
  EXPECT_EQ(ended.exit_code, 3);
}

TEST_F(ProcessesTest, gives_the_memory_of_forgotten_output_back) {
  for (int i = 0; i < 80; ++i) Wait(Start("head -c 3000000 /dev/zero"));
  if (!kAddressSanitizer && !kThreadSanitizer) {
    EXPECT_LT(AgentUnderTest::PrivateMemory(agent_.process().pid()), 16 * 1024);
  }
}

}  // namespace
}  // namespace caisson::agent
