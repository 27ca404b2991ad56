// SPDX-License-Identifier: Apache-2.0
#include "isolate/executor.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "json/reader.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

std::string_view KindName(json::Value::Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {
      "null", "a boolean", "a number", "a number", "a number", "a string", "an array", "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

Outcome ProtocolFault(Outcome outcome, std::string message) {
  outcome.fault = Fault::kProtocol;
  outcome.message = std::move(message);
  return outcome;
}

}  // namespace

Result<EncodedJob> Encode(const Job& job) {
  json::Object payload;
  payload.Set("self", job.self);
  payload.Set("state", job.state);
  payload.Set("config", job.config);
  CAISSON_ASSIGN(std::string text, json::Write(json::Value(std::move(payload))));
  return EncodedJob{job.source, std::move(text), job.limits};
}

Outcome Decode(EncodedOutcome encoded) {
  Outcome outcome = std::move(encoded.outcome);
  if (!outcome.ok()) return outcome;
  json::ReadOptions options;
  options.max_bytes = encoded.value_text.size();
  // Two keys of one dict may have the same JSON name (1 and "1"); keeping either would lose data.
  options.reject_duplicate_keys = true;
  Result<json::Value> value = json::Read(encoded.value_text, options);
  if (!value) {
    return ProtocolFault(std::move(outcome),
                         fmt::format("the result is not valid JSON: {}", value.error().message));
  }
  if (!value->is_object()) {
    return ProtocolFault(
        std::move(outcome),
        fmt::format("run must return a dict, but its result is {}", KindName(value->kind())));
  }
  outcome.value = *std::move(value);
  return outcome;
}

Result<Outcome> LocalRuntime::Call(const Job& job) {
  CAISSON_ASSIGN(const EncodedJob encoded, Encode(job));
  CAISSON_ASSIGN(EncodedOutcome outcome, executor_->Execute(encoded));
  return Decode(std::move(outcome));
}

}  // namespace caisson::isolate
