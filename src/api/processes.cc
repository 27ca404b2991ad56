// SPDX-License-Identifier: Apache-2.0
// …/processes: managed processes, which live on when nobody is connected
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <csignal>

#include "agent/client.h"
#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "control/request_check.h"
#include "errors/agent.h"
#include "errors/api.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

constexpr std::int64_t kMostWait = 3600'000;
constexpr std::int64_t kStandardWait = 30'000;
constexpr std::int64_t kStandardGrace = 5000;
constexpr std::int64_t kMostSequence = std::int64_t{1} << 62;

struct SignalName {
  std::string_view name;
  int number;
};
constexpr std::array<SignalName, 8> kSignals{{{"SIGHUP", SIGHUP},
                                              {"SIGINT", SIGINT},
                                              {"SIGQUIT", SIGQUIT},
                                              {"SIGKILL", SIGKILL},
                                              {"SIGTERM", SIGTERM},
                                              {"SIGUSR1", SIGUSR1},
                                              {"SIGUSR2", SIGUSR2},
                                              {"SIGWINCH", SIGWINCH}}};

std::string NameOfSignal(int number) {
  for (const SignalName& signal : kSignals) {
    if (signal.number == number) return std::string(signal.name);
  }
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : fmt::format("SIG{}", number);
}

// A sandbox held in use, with a connection for one operation.
struct Reached {
  control::InUse held;
  os::UniqueFd connection;
};
Result<Reached> Reach(Call& call) {
  CAISSON_ASSIGN(control::InUse held, call.context.sandboxes.Hold(call.caller, call.id()));
  CAISSON_ASSIGN(os::UniqueFd connection, call.context.sandboxes.Connect(held.sandbox));
  return Reached{.held = std::move(held), .connection = std::move(connection)};
}

json::Array Rest(const std::vector<std::string>& argv) {
  json::Array args;
  for (std::size_t i = 1; i < argv.size(); ++i) args.emplace_back(ValidUtf8(argv[i]));
  return args;
}
std::string First(const std::vector<std::string>& argv) {
  return argv.empty() ? "" : ValidUtf8(argv.front());
}

std::string_view NameOf(agent::ProcessState state) {
  constexpr std::array<std::string_view, 5> kNames{"starting", "running", "terminating", "exited",
                                                   "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

json::Value ViewOf(const agent::ProcessView& process) {
  json::Object view{{"process_id", ValidUtf8(process.process_id)},
                    {"kind", process.is_pty ? "pty" : "process"},
                    {"pid", std::int64_t{process.pid}},
                    {"state", NameOf(process.state)},
                    {"leader_exited", process.leader_exited},
                    {"tree_exited", process.tree_exited},
                    {"created_at", Timestamp(process.created_at_ms)}};
  if (process.finished_at_ms) view.Set("finished_at", Timestamp(*process.finished_at_ms));
  if (process.exit_code) view.Set("exit_code", std::int64_t{*process.exit_code});
  if (process.signal && *process.signal != 0) {
    view.Set("signal", NameOfSignal(*process.signal));
    if (!process.exit_code) view.Set("exit_code", std::int64_t{128 + *process.signal});
  }
  view.Set("cmd", First(process.argv));
  view.Set("args", Rest(process.argv));
  view.Set("cwd", ValidUtf8(process.cwd));
  if (process.foreground) {
    view.Set("foreground", json::Object{{"pid", std::int64_t{process.foreground->pid}},
                                        {"cmd", First(process.foreground->argv)},
                                        {"args", Rest(process.foreground->argv)}});
  }
  view.Set("output", json::Object{{"oldest_seq", process.output.oldest_seq},
                                  {"newest_seq", process.output.newest_seq},
                                  {"bytes", process.output.bytes}});
  return view;
}

Result<agent::Pty> ReadSize(const Fields& fields, bool is_required) {
  agent::Pty size;
  CAISSON_ASSIGN(const auto rows, fields.Integer("rows"));
  CAISSON_ASSIGN(const auto columns, fields.Integer("cols"));
  auto take = [&](const char* name, std::optional<std::int64_t> value,
                  std::uint16_t& into) -> Result<void> {
    if (value.value_or(0) == 0 && !is_required) return {};
    if (value.value_or(0) < 1 || *value > 4096) {
      return control::FailAt(name, errors::kApiField, "must be a number from 1 to 4096");
    }
    into = static_cast<std::uint16_t>(*value);
    return {};
  };
  CAISSON_TRY(take("rows", rows, size.rows));
  CAISSON_TRY(take("cols", columns, size.columns));
  return size;
}

Result<void> Start(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(const auto pty, fields.Object("pty"));
  CAISSON_ASSIGN(agent::Command command, ReadCommand(fields, reached.held.sandbox, "/bin/bash"));
  if (pty) {
    CAISSON_ASSIGN(command.pty, ReadSize(*pty, false));
    command.env.try_emplace("TERM", "xterm-256color");
  }
  CAISSON_ASSIGN(const auto view, agent::StartProcess(std::move(reached.connection), command));
  return Succeed(call.exchange, ViewOf(view));
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(const auto all, agent::ListProcesses(std::move(reached.connection)));
  json::Array views;
  for (const agent::ProcessView& process : all) views.push_back(ViewOf(process));
  return Succeed(call.exchange, json::Object{{"processes", std::move(views)}});
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(const auto view,
                 agent::GetProcess(std::move(reached.connection), call.Parameter("process")));
  return Succeed(call.exchange, ViewOf(view));
}

Result<void> Delete(Call& call) {
  CAISSON_ASSIGN(const std::int64_t grace,
                 ReadQueryNumber(call.request(), "grace_ms", kStandardGrace, kMostWait));
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(const auto view,
                 agent::TerminateProcess(std::move(reached.connection),
                                         {.process_id = call.Parameter("process"),
                                          .grace = std::chrono::milliseconds(grace)}));
  return Succeed(call.exchange, ViewOf(view));
}

Result<void> Input(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const auto text, fields.Text("data_base64"));
  const auto data = FromBase64(text.value_or("?"));
  if (!data) {
    return control::FailAt("data_base64", errors::kApiField,
                           "$.data_base64 must be strict, padded base64");
  }
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(const std::uint64_t seq,
                 agent::SendInput(std::move(reached.connection),
                                  {.process_id = call.Parameter("process"), .data = *data}));
  return Succeed(call.exchange, json::Object{{"input_seq", seq}});
}

Result<void> Done(Call& call, const Result<void>& outcome) {
  if (!outcome) return outcome;
  return Succeed(call.exchange, json::Object{{"ok", true}});
}

Result<void> CloseInput(Call& call) {
  CAISSON_ASSIGN(Reached reached, Reach(call));
  return Done(call, agent::CloseInput(std::move(reached.connection), call.Parameter("process")));
}

Result<void> Resize(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const agent::Pty size, ReadSize(fields, true));
  CAISSON_ASSIGN(Reached reached, Reach(call));
  return Done(call, agent::ResizeProcess(std::move(reached.connection),
                                         {.process_id = call.Parameter("process"), .size = size}));
}

Result<void> Signal(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const std::string name, fields.RequiredText("signal"));
  int number = 0;
  for (const SignalName& signal : kSignals) {
    if (signal.name == name) number = signal.number;
  }
  if (number == 0) {
    return control::FailAt("signal", errors::kApiField,
                           "$.signal must be one of SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM, "
                           "SIGUSR1, SIGUSR2, SIGWINCH");
  }
  CAISSON_ASSIGN(Reached reached, Reach(call));
  return Done(call,
              agent::SignalProcess(std::move(reached.connection),
                                   {.process_id = call.Parameter("process"), .signal = number}));
}

Result<void> Wait(Call& call) {
  const std::string* scope = call.request().Query("scope");
  if (scope != nullptr && !scope->empty() && *scope != "leader" && *scope != "tree") {
    return control::FailAt("scope", errors::kApiField, "must be leader or tree");
  }
  CAISSON_ASSIGN(const std::int64_t timeout,
                 ReadQueryNumber(call.request(), "timeout_ms", kStandardWait, kMostWait));
  CAISSON_ASSIGN(Reached reached, Reach(call));
  // A client that goes away ends the wait.
  const os::UniqueFd twin(fcntl(reached.connection.get(), F_DUPFD_CLOEXEC, 0));
  const std::stop_callback cancel(call.exchange.gone(),
                                  [&twin] { shutdown(twin.get(), SHUT_RDWR); });
  CAISSON_ASSIGN(
      const auto view,
      agent::WaitProcess(std::move(reached.connection),
                         {.process_id = call.Parameter("process"),
                          .scope = scope != nullptr && *scope == "tree" ? agent::WaitScope::kTree
                                                                        : agent::WaitScope::kLeader,
                          .timeout = std::chrono::milliseconds(timeout)}));
  return Succeed(call.exchange, ViewOf(view));
}

std::string_view NameOf(agent::EventType type) {
  constexpr std::array<std::string_view, 4> kNames{"data", "exit", "heartbeat", "error"};
  return kNames[static_cast<std::size_t>(type)];
}
std::string_view NameOf(agent::OutputStream stream) {
  constexpr std::array<std::string_view, 3> kNames{"stdout", "stderr", "pty"};
  return kNames[static_cast<std::size_t>(stream)];
}

json::Value FrameOf(const agent::ProcessEvent& event) {
  json::Object frame{{"type", NameOf(event.type)}};
  if (event.seq != 0) frame.Set("seq", event.seq);
  if (event.type == agent::EventType::kData) {
    frame.Set("stream", NameOf(event.stream));
    frame.Set("data_base64", Base64(event.data));
  }
  if (event.exit_code) frame.Set("exit_code", std::int64_t{*event.exit_code});
  if (event.signal && *event.signal != 0) {
    frame.Set("signal", NameOfSignal(*event.signal));
    if (!event.exit_code) frame.Set("exit_code", std::int64_t{128 + *event.signal});
  }
  if (!event.error.empty()) frame.Set("error", ValidUtf8(event.error));
  if (event.oldest_available_seq) frame.Set("oldest_available_seq", *event.oldest_available_seq);
  return frame;
}

Result<void> WriteEvent(Call& call, const agent::ProcessEvent& event) {
  CAISSON_ASSIGN(std::string line, json::Write(FrameOf(event)));
  return call.exchange.Write(line += '\n');
}

Result<void> Connect(Call& call) {
  CAISSON_ASSIGN(const std::int64_t after,
                 ReadQueryNumber(call.request(), "after", 0, kMostSequence));
  CAISSON_ASSIGN(Reached reached, Reach(call));
  CAISSON_ASSIGN(auto events,
                 agent::ProcessEvents::Connect(std::move(reached.connection),
                                               {.process_id = call.Parameter("process"),
                                                .after = static_cast<std::uint64_t>(after)}));
  const std::stop_callback cancel(call.exchange.gone(), [&events] { events.Cancel(); });
  CAISSON_TRY(call.exchange.Begin(200,
                                  {{"Content-Type", "application/x-ndjson"},
                                   {"Cache-Control", "no-store"},
                                   {"X-Accel-Buffering", "no"}},
                                  std::nullopt));
  while (true) {
    auto event = events.Next(call.context.options.heartbeat);
    if (!event) {
      // The client sees that this is no end of the process.
      CAISSON_TRY(
          WriteEvent(call, {.type = agent::EventType::kError, .error = event.error().message}));
      return call.exchange.Finish();
    }
    if (!*event) return call.exchange.Finish();
    CAISSON_TRY(WriteEvent(call, **event));
  }
}

}  // namespace

void AddProcesses(Routes& routes) {
  const std::string all = "/v1/sandboxes/{id}/processes";
  const std::string one = all + "/{process}";
  routes.Add("POST " + all, Access::kSandbox, Pace::kBlocking, Start);
  routes.Add("GET " + all, Access::kSandbox, Pace::kBlocking, List);
  routes.Add("GET " + one, Access::kSandbox, Pace::kBlocking, Get);
  routes.Add("DELETE " + one, Access::kSandbox, Pace::kBlocking, Delete);
  routes.Add("GET " + one + "/connect", Access::kSandbox, Pace::kBlocking, Connect);
  routes.Add("POST " + one + "/input", Access::kSandbox, Pace::kBlocking, Input);
  routes.Add("POST " + one + "/stdin/close", Access::kSandbox, Pace::kBlocking, CloseInput);
  routes.Add("POST " + one + "/resize", Access::kSandbox, Pace::kBlocking, Resize);
  routes.Add("POST " + one + "/signal", Access::kSandbox, Pace::kBlocking, Signal);
  routes.Add("GET " + one + "/wait", Access::kSandbox, Pace::kBlocking, Wait);
}

}  // namespace caisson::api
