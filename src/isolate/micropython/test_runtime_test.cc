// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/test_runtime.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "json/writer.h"

namespace caisson::isolate {
namespace {

std::unique_ptr<Executor> Make(const MicroPythonOptions& options) {
  Result<std::unique_ptr<Executor>> executor = MicroPythonExecutor::Create(options);
  if (executor) return *std::move(executor);
  std::fprintf(stderr, "no executor: %s\n", executor.error().message.c_str());
  std::abort();
}

MicroPythonOptions TestOptions() {
  MicroPythonOptions options;
  options.heap_sizes = {1u << 20, 8u << 20};
  options.cache_dir = CAISSON_BINARY_DIR "/test-cache";
  return options;
}

}  // namespace

Executor& TestExecutor() {
  static const std::unique_ptr<Executor> executor = Make(TestOptions());
  return *executor;
}

Executor& OpenExecutor() {
  static const std::unique_ptr<Executor> executor = [] {
    MicroPythonOptions options = TestOptions();
    options.heap_sizes = {1u << 20, 8u << 20};
    options.unrestricted_for_probes = true;
    return Make(options);
  }();
  return *executor;
}

Outcome Call(std::string_view source, std::string_view payload, const Limits& limits) {
  return CallOn(TestExecutor(), source, payload, limits);
}

Outcome CallOn(Executor& executor, std::string_view source, std::string_view payload,
               const Limits& limits) {
  Result<EncodedOutcome> result =
      executor.Execute({std::string(source), std::string(payload), limits});
  if (result) return Decode(*std::move(result));
  std::fprintf(stderr, "no outcome: %s\n", result.error().message.c_str());
  std::abort();
}

std::string_view NameOf(Fault fault) {
  constexpr std::array<std::string_view, 13> kNames = {
      "none",   "raised",   "syntax",   "fuel",   "cpu",      "memory", "wall_clock",
      "output", "messages", "protocol", "exited", "artifact", "killed"};
  static_assert(kNames.size() == static_cast<std::size_t>(Fault::kKilled) + 1);
  return kNames[static_cast<std::size_t>(fault)];
}

std::string Show(const Outcome& outcome) {
  if (outcome.ok()) return json::WriteCanonical(outcome.value).value_or("not representable");
  std::string text(NameOf(outcome.fault));
  if (!outcome.error_type.empty()) text += " " + outcome.error_type;
  return text + ": " + outcome.message;
}

}  // namespace caisson::isolate
