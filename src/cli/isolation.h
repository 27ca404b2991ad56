// SPDX-License-Identifier: Apache-2.0
// The isolate runtime that a command uses: jailed workers of one tenant, this process. The workers
// run a program of their own, caisson-isolate, which stands beside the command: it is the only one
// that maps the WebAssembly engine (about 30 MB; 0.8 ms of each start when the command linked it,
// measured) and it holds no compiler, no engine state and no secrets that a hole could reach.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "cli/arguments.h"
#include "isolate/script_code_runtime.h"
#include "isolate/worker/script_worker.h"
#include "isolate/worker/worker.h"

namespace caisson::cli {

// The path of caisson-isolate: `given`, or beside this program when that is empty. Fails with
// cli.isolate_missing.
Result<std::string> FindIsolateProgram(const std::string& given = {});

// MicroPython. Starts no process yet. Fails with cli.isolate_missing when caisson-isolate is not
// there.
Result<std::unique_ptr<isolate::WorkerRuntime>> OpenIsolation(const IsolationArguments& arguments);

// CPython, likewise; `stop` ends its calls. Fails with wasm.artifact too.
class CpythonIsolation {
 public:
  static Result<CpythonIsolation> Open(const IsolationArguments& arguments, std::stop_token stop);
  // Starts a worker now. Fails as isolate::ScriptWorkerRuntime::Warm.
  Result<void> Warm() { return workers_->Warm(); }
  isolate::Runtime* runtime() { return calls_.get(); }

 private:
  std::unique_ptr<isolate::ScriptWorkerRuntime> workers_;
  std::unique_ptr<isolate::ScriptCodeRuntime> calls_;
};

}  // namespace caisson::cli
