// SPDX-License-Identifier: Apache-2.0
// A Runtime for code nodes over a ScriptRuntime: one call is one run of a body, its result the one
// final message. The same rules as everywhere for what may come out (isolate/executor.h).
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "isolate/runtime.h"
#include "isolate/script.h"

namespace caisson::isolate {

class ScriptCodeRuntime final : public Runtime {
 public:
  // `scripts` outlives this. Limits::heap_bytes and fuel have no meaning for it; cpu time is not
  // limited beside the wall clock.
  // A call ends with Fault::kKilled when `stop` asks for it.
  explicit ScriptCodeRuntime(ScriptRuntime& scripts, std::stop_token stop = {})
      : scripts_(scripts), stop_(std::move(stop)) {}
  Result<Outcome> Call(const Job& job) override;
  json::Value Describe() const override { return scripts_.Describe(); }

 private:
  ScriptRuntime& scripts_;
  std::stop_token stop_;
};

// Top-level names that `import` and `from` statements at the start of a line name. Only chooses the
// prepared interpreter: what it misses is imported by the run itself.
std::vector<std::string> ImportedNames(std::string_view source);

}  // namespace caisson::isolate
