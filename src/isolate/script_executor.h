// SPDX-License-Identifier: Apache-2.0
// The half of a ScriptRuntime that stands next to the guest, in this process or in a worker.
#pragma once

#include <functional>

#include "base/status.h"
#include "isolate/script.h"
#include "json/value.h"

namespace caisson::isolate {

class ScriptExecutor {
 public:
  virtual ~ScriptExecutor() = default;

  // Blocks. `cancelled` is asked every few milliseconds on the calling thread; true ends the run
  // with Fault::kKilled. Needs a thread with stack_bytes() of stack.
  virtual Result<ScriptOutcome> Execute(const ScriptJob& job, ScriptSink& sink,
                                        const std::function<bool()>& cancelled) = 0;
  // What is left to do of the last runs once their outcomes have been passed on; makes the next one
  // quicker. May be left out.
  virtual void Recover() {}
  virtual std::size_t stack_bytes() const { return 8u << 20; }
  virtual json::Value Describe() const = 0;
};

}  // namespace caisson::isolate
