// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "errors/graph.h"
#include "errors/isolate.h"
#include "errors/json.h"
#include "graph/context.h"
#include "graph/finite.h"
#include "json/path.h"

namespace caisson::graph {
namespace {

using isolate::Fault;

std::unexpected<Status> NotSerialisable(std::string_view label, std::string_view key,
                                        const std::string& leaf) {
  return Fail(errors::kGraphMarshalling, std::string(label) + " field '" + std::string(key) +
                                             "' is not JSON-serialisable; the number at " + leaf +
                                             " is not finite");
}

// `fields` without the members that JSON cannot hold; under Policy::kRaise one of them is an error.
Result<json::Value> Project(RunContext& context, const std::string& id, std::string_view label,
                            Policy policy, json::Value fields) {
  std::string dropped;
  const json::Value all = fields;  // keeps what is walked while members are dropped
  for (const auto& [key, value] : all.as_object()) {
    json::PathBuilder path;
    if (!FindNonJson(value, path)) continue;
    path.PrependKey(key);
    const std::string leaf = path.Finish();
    if (policy == Policy::kRaise) return NotSerialisable(label, key, leaf);
    fields.mutable_object().Erase(key);
    if (!dropped.empty()) dropped += ", ";
    dropped.append(key).append(" (").append(leaf).append(" is not finite)");
  }
  if (!dropped.empty()) {
    context.Log(nodes::LogLevel::kWarning, "CodeNode " + id + ": dropped non-serialisable " +
                                               std::string(label) +
                                               " fields from sandbox input: " + dropped);
  }
  return fields;
}

Result<json::Value> Injected(RunContext& context, const PlannedNode& node,
                             const nodes::State& state) {
  std::size_t text_made = 0;
  const Scope scope{state, nullptr, node.id, &context.warn, &text_made};
  json::Object self;
  for (const auto& [field, value] : node.code.injected) {
    CAISSON_ASSIGN(json::Value resolved, value.Resolve(scope));
    self.Set(field, std::move(resolved));
  }
  json::Value all(std::move(self));
  CAISSON_TRY(CheckBounds(all));
  return Project(context, node.id, "configurable", Policy::kRaise, std::move(all));
}

Result<isolate::Job> MakeJob(RunContext& context, const PlannedNode& node,
                             const nodes::State& state) {
  const Policy policy = context.config.policy;
  isolate::Job job;
  CAISSON_ASSIGN(job.self, Injected(context, node, state));
  CAISSON_ASSIGN(job.state, Project(context, node.id, "state", policy, state.ToJson()));
  CAISSON_ASSIGN(json::Value configurable,
                 Project(context, node.id, "config", policy, context.guest_config));
  job.config = json::Object{{"configurable", std::move(configurable)}};
  job.source = node.code.source;
  job.limits = context.config.limits;
  return job;
}

// Shortens the call's time to what the run has left; says whether it did.
bool ClampToDeadline(Interrupt& interrupt, isolate::Limits& limits) {
  const auto deadline = interrupt.deadline();
  if (!deadline) return false;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
  if (left >= limits.wall_clock) return false;
  limits.wall_clock = std::max(left, std::chrono::milliseconds(1));
  return true;
}

std::vector<AuthorFrame> MapTraceback(const CodePart& code,
                                      const std::vector<isolate::TracebackFrame>& frames) {
  std::vector<AuthorFrame> mapped;
  for (const isolate::TracebackFrame& frame : frames) {
    AuthorFrame& author = mapped.emplace_back();
    author.function = frame.function;
    if (frame.line == 0 || frame.line > code.body_lines.size()) continue;
    author.body_line = code.body_lines[frame.line - 1];
    if (author.body_line != 0 && code.file_line != 0) {
      author.file_line = code.file_line + author.body_line - 1;
    }
  }
  return mapped;
}

// How one kind of fault is reported.
struct Report {
  ErrorCode code;
  Ending ending;
  std::string message;
  std::string hint;
};

std::string OrElse(const std::string& text, const std::string& fallback) {
  return text.empty() ? fallback : text;
}

Report ReportMemory(const isolate::Outcome& outcome, const isolate::Limits& limits) {
  const bool heap = outcome.memory == isolate::MemoryKind::kHeap;
  return {errors::kIsolateMemoryExhausted, Ending::kMemory,
          std::string("execution exceeded its memory limit: the ") +
              (heap ? "guest's heap of " + std::to_string(limits.heap_bytes)
                    : "linear memory of " + std::to_string(limits.memory_bytes)) +
              " bytes is used up",
          "hold less data at once, or give the run a larger limit"};
}

Report ReportLimit(const isolate::Outcome& outcome, const isolate::Limits& limits) {
  switch (outcome.fault) {
    case Fault::kFuel:
      return {errors::kIsolateFuelExhausted, Ending::kFuel,
              "execution exceeded its fuel limit of " + std::to_string(limits.fuel) + " units",
              "do less work per call (is there an endless loop?), or give the run more fuel"};
    case Fault::kCpu:
      return {errors::kIsolateCpuExceeded, Ending::kFuel,
              "execution exceeded its limit of CPU time: " + outcome.message,
              "do less work per call, or give the run a larger limit"};
    case Fault::kMessages:
      return {errors::kIsolateMessagesExceeded, Ending::kOutput,
              "the code sent more messages than its limit: " + outcome.message,
              "send fewer messages, or give the run a larger limit"};
    case Fault::kMemory:
      return ReportMemory(outcome, limits);
    case Fault::kWallClock:
      return {errors::kIsolateWallClockExceeded, Ending::kWallClock,
              "execution exceeded its wall-clock limit of " +
                  std::to_string(limits.wall_clock.count()) + " ms",
              "do less work per call, or give the run a larger limit"};
    default:
      return {errors::kIsolateOutputExceeded, Ending::kOutput,
              "sandbox output exceeded the maximum size of " + std::to_string(limits.output_bytes) +
                  " bytes",
              "return less data, or give the run a larger limit"};
  }
}

Report ReportOf(const isolate::Outcome& outcome, const isolate::Limits& limits) {
  switch (outcome.fault) {
    case Fault::kRaised:
      return {errors::kGraphCodeRaised, Ending::kError,
              OrElse(outcome.message, OrElse(outcome.error_type, "error in CodeNode body")), ""};
    case Fault::kSyntax:
      return {errors::kGraphCodeSyntax, Ending::kSyntax,
              "the runtime refused the code: " + OrElse(outcome.message, "invalid syntax"),
              "use only syntax that the runtime knows"};
    case Fault::kExited:
      return {errors::kGraphCodeExited, Ending::kExited,
              "the code ended the interpreter with " +
                  OrElse(outcome.error_type, "an exception that nothing catches") +
                  (outcome.message.empty() ? "" : ": " + outcome.message),
              "return a result instead"};
    case Fault::kProtocol:
      return {errors::kGraphCodeProtocol, Ending::kProtocol,
              OrElse(outcome.message, "sandbox 'update' must be a JSON object"),
              "return a dict of JSON values"};
    case Fault::kArtifact:
      return {errors::kGraphCodeArtifact, Ending::kArtifact,
              "the interpreter failed: " + OrElse(outcome.message, "a trap that no limit explains"),
              "this is not the author's fault; please report it with the code"};
    case Fault::kKilled:
      return {errors::kIsolateWorkerLost, Ending::kKilled,
              OrElse(outcome.message, "the isolate worker died during the call"),
              "run the workflow again"};
    default:
      return ReportLimit(outcome, limits);
  }
}

void LogFault(RunContext& context, const std::string& id, const isolate::Outcome& outcome) {
  std::string text = "CodeNode " + id;
  switch (outcome.fault) {
    case Fault::kFuel:
    case Fault::kCpu:
    case Fault::kMemory:
    case Fault::kWallClock:
      text += " exceeded sandbox resource limits";
      break;
    case Fault::kOutput:
    case Fault::kMessages:
    case Fault::kProtocol:
      text += " produced invalid sandbox output";
      break;
    default:
      text += " raised " + outcome.error_type + " in sandbox: " + outcome.message;
  }
  context.Log(nodes::LogLevel::kError, text);
}

CodeFailure Explain(RunContext& context, const PlannedNode& node, const isolate::Outcome& outcome,
                    const isolate::Limits& limits) {
  LogFault(context, node.id, outcome);
  Report report = ReportOf(outcome, limits);
  CodeFailure failure{{}, report.ending};
  failure.error.code = report.code;
  failure.error.message = "CodeNode '" + node.id + "': " + report.message;
  failure.error.hint = std::move(report.hint);
  failure.error.error_type = outcome.error_type;
  failure.error.traceback = MapTraceback(node.code, outcome.traceback);
  failure.error.guest_output = outcome.stdout_text;
  return failure;
}

std::unexpected<CodeFailure> OwnFailure(const PlannedNode& node, Status status) {
  const bool marshalling =
      status.code == errors::kGraphMarshalling || status.code == errors::kJsonNotRepresentable;
  CodeFailure failure{{}, marshalling ? Ending::kMarshalling : Ending::kInternal};
  failure.error.code = status.code;
  failure.error.message = "CodeNode '" + node.id + "': " + status.message;
  failure.error.hint = std::move(status.details);
  return std::unexpected(std::move(failure));
}

}  // namespace

std::expected<json::Value, CodeFailure> RunCode(RunContext& context, Interrupt& interrupt,
                                                const PlannedNode& node,
                                                const nodes::State& state) {
  auto job = MakeJob(context, node, state);
  if (!job) return OwnFailure(node, std::move(job).error());
  const bool clamped = ClampToDeadline(interrupt, job->limits);
  auto outcome = context.services.Of(context.config.runtimes.Of(node.id))->Call(*job);
  if (!outcome) return OwnFailure(node, std::move(outcome).error());
  if (!outcome->ok()) {
    CodeFailure failure = Explain(context, node, *outcome, job->limits);
    failure.timed_out = clamped && outcome->fault == Fault::kWallClock;
    return std::unexpected(std::move(failure));
  }
  if (outcome->value.is_object()) return std::move(outcome->value);
  outcome->fault = Fault::kProtocol;
  return std::unexpected(Explain(context, node, *outcome, job->limits));
}

}  // namespace caisson::graph
