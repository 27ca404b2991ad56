// SPDX-License-Identifier: Apache-2.0
#include "isolate/script_code_runtime.h"

#include <algorithm>
#include <string>

#include "isolate/executor.h"

namespace caisson::isolate {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view Trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// "a.b as c" -> "a"
std::string_view TopLevel(std::string_view name) {
  name = Trim(name);
  return name.substr(0, std::min(name.find_first_of(". \t;#"), name.size()));
}

void AddNames(std::string_view list, std::vector<std::string>& names) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = TopLevel(list.substr(0, comma));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

class BodySink final : public ScriptSink {
 public:
  explicit BodySink(const Limits& limits) : limits_(limits) {}

  bool Take(const ScriptMessage& message) override {
    switch (message.kind) {
      case MessageKind::kDone:
        ++results;
        value = message.text;
        return true;
      case MessageKind::kStdout:
      case MessageKind::kStderr:
        TakeOutput(message.text);
        return true;
      default:
        ++others;
        return true;
    }
  }

  std::string value;
  std::string output;
  std::uint64_t dropped = 0;
  std::size_t results = 0;
  std::size_t others = 0;

 private:
  void TakeOutput(std::string_view text) {
    const std::uint64_t room =
        limits_.stdout_bytes - std::min<std::uint64_t>(limits_.stdout_bytes, output.size());
    const std::string_view kept = text.substr(0, std::min<std::uint64_t>(room, text.size()));
    output += kept;
    dropped += text.size() - kept.size();
  }

  const Limits& limits_;
};

ScriptLimits LimitsOf(const Limits& limits) {
  ScriptLimits script;
  script.memory_bytes = limits.memory_bytes;
  script.wall_clock = limits.wall_clock;
  script.output_bytes = limits.output_bytes;
  script.stream_bytes = std::max<std::uint64_t>(limits.stdout_bytes, 1);
  script.messages = 1;
  return script;
}

EncodedOutcome Encoded(ScriptOutcome script, BodySink sink) {
  EncodedOutcome encoded;
  Outcome& outcome = encoded.outcome;
  outcome.fault = script.fault;
  if (script.fault == Fault::kMemory) outcome.memory = MemoryKind::kLinear;
  outcome.error_type = std::move(script.error_type);
  outcome.message = std::move(script.message);
  outcome.traceback = std::move(script.traceback);
  outcome.stdout_text = std::move(sink.output);
  outcome.stdout_dropped = sink.dropped + script.stdout_dropped + script.stderr_dropped;
  outcome.usage = script.usage;
  if (!outcome.ok()) return encoded;
  if (sink.results != 1 || sink.others != 0) {
    outcome.fault = Fault::kProtocol;
    outcome.message = "the code ended without the one result that it must give";
    return encoded;
  }
  encoded.value_text = std::move(sink.value);
  return encoded;
}

}  // namespace

std::vector<std::string> ImportedNames(std::string_view source) {
  std::vector<std::string> names;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = Trim(source.substr(0, end));
    source.remove_prefix(std::min(end + 1, source.size()));
    if (line.starts_with("import ")) AddNames(line.substr(7), names);
    if (line.starts_with("from ")) AddNames(TopLevel(line.substr(5)), names);
  }
  return names;
}

Result<Outcome> ScriptCodeRuntime::Call(const Job& job) {
  CAISSON_ASSIGN(EncodedJob encoded, Encode(job));
  ScriptJob script;
  script.entry = ScriptEntry::kBody;
  script.imports = ImportedNames(job.source);
  script.source = std::move(encoded.source);
  script.inputs = std::move(encoded.payload);
  script.limits = LimitsOf(job.limits);
  BodySink sink(job.limits);
  CAISSON_ASSIGN(ScriptOutcome outcome, scripts_.Run(script, sink, stop_));
  return Decode(Encoded(std::move(outcome), std::move(sink)));
}

}  // namespace caisson::isolate
