// SPDX-License-Identifier: Apache-2.0
// What a caisson_engine is: isolate workers that its runs and calls share, and the record of runs
// when there is one. Thread-safe; everything blocks until it is done.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>

#include "base/status.h"
#include "capi/options.h"
#include "graph/plan.h"
#include "isolate/worker/worker.h"
#include "json/value.h"
#include "store/workflows.h"

namespace caisson::capi {

// Is given one event as JSON text; false cancels the run. Null: nobody listens.
using LineSink = std::function<bool(std::string_view line)>;

class Engine {
 public:
  // Starts no process. Fails with cli.isolate_missing, store.*.
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options);

  const isolate::Limits& limits() const { return options_.isolation.limits; }
  // Started with the first use. Fails as cli::OpenIsolation and WorkerRuntime::Warm do.
  Result<isolate::WorkerRuntime*> Workers();

  // The answers of caisson_run and caisson_resume.
  json::Object Run(std::string_view ir, std::string_view inputs, const RunOptions& options,
                   const std::stop_token& stop, const LineSink& sink);
  json::Object Resume(const std::string& run_id, std::string_view answers,
                      const CarryOptions& options, const std::stop_token& stop,
                      const LineSink& sink);

  const cli::IsolationArguments& isolation() const { return options_.isolation; }
  store::WorkflowStore* store() { return store_.get(); }  // null: nothing is recorded

 private:
  explicit Engine(EngineOptions options) : options_(std::move(options)) {}

  EngineOptions options_;
  std::unique_ptr<store::WorkflowStore> store_;
  std::mutex mutex_;  // over the next one
  std::unique_ptr<isolate::WorkerRuntime> workers_;
};

}  // namespace caisson::capi
