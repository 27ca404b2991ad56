// SPDX-License-Identifier: Apache-2.0
// POST …/exec: a command with its streams, buffered or as NDJSON
#include <fmt/format.h>

#include <chrono>
#include <csignal>

#include "agent/client.h"
#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "control/request_check.h"
#include "errors/api.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

using Kind = agent::ExecEvent::Kind;

constexpr double kMostTimeout = 86400;
constexpr int kTimedOutCode = 124;
constexpr int kNotFoundCode = 127;
constexpr int kNotExecutableCode = 126;

struct Wish {
  agent::ExecRequest request;
  std::string standard_input;
  double timeout_seconds = 0;
  bool stream = false;
};

Result<Wish> ReadWish(Call& call, const Fields& fields, const store::Sandbox& sandbox) {
  Wish wish;
  CAISSON_ASSIGN(wish.request.command, ReadCommand(fields, sandbox, ""));
  CAISSON_ASSIGN(auto input, fields.Text("stdin"));
  CAISSON_ASSIGN(const auto stream, fields.Boolean("stream"));
  CAISSON_ASSIGN(const auto timeout, fields.Number("timeout_seconds"));
  wish.standard_input = std::move(input).value_or("");
  wish.request.stdin_open = !wish.standard_input.empty();
  const std::string* query = call.request().Query("stream");
  wish.stream = stream.value_or(false) || (query != nullptr && (*query == "true" || *query == "1"));
  if (!timeout || *timeout == 0) return wish;
  if (!(*timeout > 0 && *timeout <= kMostTimeout)) {
    return control::FailAt("timeout_seconds", errors::kApiField,
                           fmt::format("must be above 0 and at most {}", kMostTimeout));
  }
  wish.timeout_seconds = *timeout;
  wish.request.timeout = std::chrono::milliseconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(*timeout * 1000)));
  return wish;
}

struct Ending {
  int exit_code = 0;
  std::string error;
};

// Of kExit or kFailedToStart.
Ending EndingOf(const agent::ExecEvent& event, const Wish& wish) {
  if (event.kind == Kind::kFailedToStart) {
    return {.exit_code = event.error == ENOENT ? kNotFoundCode : kNotExecutableCode,
            .error = ValidUtf8(event.data)};
  }
  if (event.timed_out) {
    return {.exit_code = kTimedOutCode,
            .error = fmt::format("the command ran longer than {} s and was killed",
                                 wish.timeout_seconds)};
  }
  return {.exit_code = event.signal != 0 ? 128 + event.signal : event.exit_code, .error = {}};
}

// One stream of a buffered command, up to a limit.
class Kept {
 public:
  explicit Kept(std::size_t most) : most_(most) {}
  void Take(std::string_view piece) {
    const std::size_t room = most_ - bytes_.size();
    dropped_ += piece.size() > room ? piece.size() - room : 0;
    bytes_ += piece.substr(0, room);
  }
  std::string Text() const { return ValidUtf8(bytes_); }
  std::string Complaint(const char* name) const {
    if (dropped_ == 0) return {};
    return fmt::format(
        "{} was cut: {} bytes are kept and {} more were dropped; stream the command, "
        "or write to a file",
        name, most_, dropped_);
  }

 private:
  std::size_t most_;
  std::string bytes_;
  std::uint64_t dropped_ = 0;
};

void Join(std::string& errors, const std::string& more) {
  if (more.empty()) return;
  if (!errors.empty()) errors += "; ";
  errors += more;
}

Result<void> RunBuffered(Call& call, agent::Exec& exec, const Wish& wish) {
  const auto start = std::chrono::steady_clock::now();
  Kept out(call.context.options.exec_output);
  Kept err(call.context.options.exec_output);
  while (true) {
    CAISSON_ASSIGN(const agent::ExecEvent event, exec.Next());
    if (event.kind == Kind::kStdout) out.Take(event.data);
    if (event.kind == Kind::kStderr) err.Take(event.data);
    if (event.kind != Kind::kExit && event.kind != Kind::kFailedToStart) continue;
    Ending ending = EndingOf(event, wish);
    Join(ending.error, out.Complaint("stdout"));
    Join(ending.error, err.Complaint("stderr"));
    json::Object result{
        {"stdout", out.Text()}, {"stderr", err.Text()}, {"exit_code", ending.exit_code}};
    if (!ending.error.empty()) result.Set("error", ending.error);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    return Succeed(call.exchange,
                   json::Object{{"result", std::move(result)}, {"exec_ms", spent.count()}});
  }
}

Result<void> WriteFrame(Call& call, const char* key, std::string text) {
  if (text.empty()) return {};
  CAISSON_ASSIGN(std::string line, json::Write(json::Object{{key, std::move(text)}}));
  return call.exchange.Write(line += '\n');
}

Result<void> WriteEnding(Call& call, const Ending& ending) {
  json::Object frame;
  if (!ending.error.empty()) frame.Set("error", ending.error);
  frame.Set("exit_code", ending.exit_code);
  CAISSON_ASSIGN(std::string line, json::Write(json::Value(std::move(frame))));
  CAISSON_TRY(call.exchange.Write(line += '\n'));
  return call.exchange.Finish();
}

Result<void> RunStreaming(Call& call, agent::Exec& exec, const Wish& wish) {
  // What fails before this is an ordinary answer.
  CAISSON_ASSIGN(agent::ExecEvent event, exec.Next());
  CAISSON_TRY(call.exchange.Begin(200,
                                  {{"Content-Type", "application/x-ndjson"},
                                   {"Cache-Control", "no-store"},
                                   {"X-Accel-Buffering", "no"}},
                                  std::nullopt));
  Utf8Pieces out;
  Utf8Pieces err;
  while (true) {
    if (event.kind == Kind::kStdout) CAISSON_TRY(WriteFrame(call, "stdout", out.Take(event.data)));
    if (event.kind == Kind::kStderr) CAISSON_TRY(WriteFrame(call, "stderr", err.Take(event.data)));
    if (event.kind == Kind::kHeartbeat) CAISSON_TRY(call.exchange.Write("{\"hb\":true}\n"));
    if (event.kind == Kind::kExit || event.kind == Kind::kFailedToStart) break;
    auto next = exec.Next(call.context.options.heartbeat);
    if (!next) {
      // How it ended is not known: an error, and no exit code.
      CAISSON_TRY(WriteFrame(call, "error", ValidUtf8(next.error().message)));
      return call.exchange.Finish();
    }
    event = *next;
  }
  CAISSON_TRY(WriteFrame(call, "stdout", out.Finish()));
  CAISSON_TRY(WriteFrame(call, "stderr", err.Finish()));
  return WriteEnding(call, EndingOf(event, wish));
}

Result<void> Execute(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const control::InUse held, call.context.sandboxes.Hold(call.caller, call.id()));
  CAISSON_ASSIGN(const Wish wish, ReadWish(call, fields, held.sandbox));
  CAISSON_ASSIGN(os::UniqueFd connection, call.context.sandboxes.Connect(held.sandbox));
  CAISSON_ASSIGN(agent::Exec exec, agent::Exec::Start(std::move(connection), wish.request));
  if (wish.request.stdin_open) exec.FeedStdin(wish.standard_input);
  const std::stop_callback cancel(call.exchange.gone(), [&exec] { exec.Cancel(); });
  return wish.stream ? RunStreaming(call, exec, wish) : RunBuffered(call, exec, wish);
}

}  // namespace

void AddExec(Routes& routes) {
  routes.Add("POST /v1/sandboxes/{id}/exec", Access::kSandbox, Pace::kBlocking, Execute);
}

}  // namespace caisson::api
