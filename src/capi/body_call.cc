// SPDX-License-Identifier: Apache-2.0
#include "capi/body_call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "capi/answer.h"
#include "capi/stoppable_calls.h"
#include "errors/body.h"
#include "errors/library.h"
#include "json/reader.h"
#include "json/writer.h"
#include "python/walk.h"
#include "workflow/body.h"
#include "workflow/body_parse.h"
#include "workflow/diagnostic_format.h"

namespace caisson::capi {
namespace {

using isolate::Fault;
using workflow::internal::ValidUtf8;

constexpr std::array<std::string_view, 13> kKinds = {
    "value",  "raised",   "syntax",   "fuel",   "cpu",      "memory", "wall_clock",
    "output", "messages", "protocol", "exited", "artifact", "killed"};

// The x of every `self.x`: which fields there are is for the caller to say, and one that is missing
// is the guest's AttributeError.
std::vector<std::string> FieldsOf(std::string_view body) {
  std::vector<std::string> fields;
  const auto parsed = workflow::ParseBody(body);
  if (!parsed) return fields;  // PrepareBody says what is wrong
  for (const python::Stmt* statement : parsed->statements) {
    python::WalkBreadthFirst(statement, [&fields](python::NodeRef node) {
      const auto* attribute = python::IsA<python::Attribute>(node.expr());
      if (attribute == nullptr) return;
      const auto* object =
          python::IsA<python::Name>(static_cast<const python::Expr*>(attribute->value));
      if (object != nullptr && object->id == "self") fields.emplace_back(attribute->attr);
    });
  }
  std::ranges::sort(fields);
  const auto repeated = std::ranges::unique(fields);
  fields.erase(repeated.begin(), repeated.end());
  return fields;
}

// The indentation of the first line that holds code, which is that of all statements of the body.
std::string_view IndentOf(std::string_view body) {
  while (!body.empty()) {
    const std::size_t code = body.find_first_not_of(" \t\f");
    if (code == std::string_view::npos) return {};
    if (body[code] != '\n' && body[code] != '\r' && body[code] != '#') return body.substr(0, code);
    const std::size_t end = body.find_first_of("\r\n", code);
    if (end == std::string_view::npos) return {};
    body.remove_prefix(end + 1);
  }
  return {};
}

bool OnlyLacksReturn(const std::vector<workflow::Diagnostic>& diagnostics) {
  return std::ranges::all_of(diagnostics, [](const workflow::Diagnostic& each) {
    return each.severity == workflow::Severity::kWarning || each.code == errors::kBodyNoReturn;
  });
}

// That a body returns something is a rule for authors; one that does not gives None, as any
// function.
std::expected<workflow::RunnableBody, std::vector<workflow::Diagnostic>> Prepare(
    const std::string& id, std::string_view body) {
  workflow::CodeNode node{.id = id, .injected = FieldsOf(body), .body = std::string(body)};
  auto runnable = workflow::PrepareBody(node);
  if (runnable || !OnlyLacksReturn(runnable.error())) return runnable;
  node.body.append("\n").append(IndentOf(body)).append("return None");
  return workflow::PrepareBody(node);
}

Result<json::Value> Member(const json::Value& inputs, std::string_view name) {
  const json::Value* found = inputs.Find(name);
  if (found == nullptr) return json::Value(json::Object{});
  if (found->is_object()) return *found;
  return Fail(errors::kLibraryOptions,
              "the inputs of a body: '" + std::string(name) + "' must be an object");
}

Result<isolate::Job> MakeJob(std::string source, std::string_view inputs,
                             const isolate::Limits& limits) {
  CAISSON_ASSIGN(const json::Value value, json::Read(inputs));
  if (!value.is_object()) {
    return Fail(errors::kLibraryOptions, "the inputs of a body must be a JSON object");
  }
  isolate::Job job{.source = std::move(source), .limits = limits};
  CAISSON_ASSIGN(job.self, Member(value, "configurable"));
  CAISSON_ASSIGN(job.state, Member(value, "state"));
  CAISSON_ASSIGN(job.config, Member(value, "config"));
  return job;
}

json::Array Traceback(const std::vector<isolate::TracebackFrame>& frames,
                      const std::vector<std::uint32_t>& body_lines) {
  json::Array all;
  for (const isolate::TracebackFrame& frame : frames) {
    const bool known = frame.line != 0 && frame.line <= body_lines.size();
    all.emplace_back(json::Object{{"line", known ? body_lines[frame.line - 1] : 0u},
                                  {"function", ValidUtf8(frame.function)}});
  }
  return all;
}

json::Object ToJson(const isolate::Outcome& outcome, const std::vector<std::uint32_t>& body_lines) {
  const double wall_ms = static_cast<double>(outcome.usage.wall.count()) / 1e6;
  json::Object shown{{"kind", kKinds[static_cast<std::size_t>(outcome.fault)]}};
  if (outcome.ok()) {
    shown.Set("value", outcome.value);
  } else {
    shown.Set("error_type", ValidUtf8(outcome.error_type));
    shown.Set("message", ValidUtf8(outcome.message));
    shown.Set("traceback", Traceback(outcome.traceback, body_lines));
  }
  shown.Set("stdout", ValidUtf8(outcome.stdout_text));
  shown.Set("stdout_dropped", outcome.stdout_dropped);
  shown.Set("usage", json::Object{{"wall_ms", wall_ms},
                                  {"fuel", outcome.usage.fuel},
                                  {"memory_bytes", outcome.usage.memory_bytes},
                                  {"output_bytes", outcome.usage.output_bytes}});
  return shown;
}

// As isolate::Decode, but that a value of any kind is one.
isolate::Outcome DecodeAny(isolate::EncodedOutcome encoded) {
  isolate::Outcome outcome = std::move(encoded.outcome);
  if (!outcome.ok()) return outcome;
  auto value = json::Read(encoded.value_text,
                          {.max_bytes = encoded.value_text.size(), .reject_duplicate_keys = true});
  if (value) {
    outcome.value = *std::move(value);
  } else {
    outcome.fault = Fault::kProtocol;
    outcome.message = "the result is not valid JSON: " + value.error().message;
  }
  return outcome;
}

Result<json::Object> Call(Engine& engine, const workflow::RunnableBody& body,
                          std::string_view inputs, const CallOptions& options,
                          const std::stop_token& stop) {
  CAISSON_ASSIGN(const isolate::Job job, MakeJob(body.source, inputs, options.limits));
  CAISSON_ASSIGN(isolate::EncodedJob encoded, isolate::Encode(job));
  CAISSON_ASSIGN(isolate::WorkerRuntime * workers, engine.Workers());
  CAISSON_ASSIGN(isolate::EncodedOutcome outcome, CallUntil(*workers, std::move(encoded), stop));
  json::Object answer = Success();
  answer.Set("outcome", ToJson(DecodeAny(std::move(outcome)), body.body_lines));
  return answer;
}

}  // namespace

json::Object CallBody(Engine& engine, std::string_view body, std::string_view inputs,
                      const CallOptions& options, const std::stop_token& stop) {
  const auto runnable = Prepare(options.node_id, body);
  if (!runnable) return Refusal(runnable.error());
  auto answer = Call(engine, *runnable, inputs, options, stop);
  return answer ? *std::move(answer) : Failure(answer.error());
}

}  // namespace caisson::capi
