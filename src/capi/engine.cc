// SPDX-License-Identifier: Apache-2.0
#include "capi/engine.h"

#include <utility>

#include "capi/places.h"
#include "cli/isolation.h"
#include "store/sqlite/workflow_store.h"

namespace caisson::capi {

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  cli::IsolationArguments& isolation = options.isolation;
  CAISSON_ASSIGN(isolation.program, IsolateProgram(isolation.program));
  isolation.data_dir = DataDirectory(isolation.data_dir);
  auto engine = std::unique_ptr<Engine>(new Engine(std::move(options)));
  if (engine->options_.store) {
    CAISSON_ASSIGN(engine->store_,
                   store::sqlite::OpenWorkflows(*engine->options_.store,
                                                engine->options_.is_durable
                                                    ? store::sqlite::Durability::kFull
                                                    : store::sqlite::Durability::kNormal));
  }
  return engine;
}

Result<isolate::WorkerRuntime*> Engine::Workers() {
  const std::lock_guard lock(mutex_);
  if (workers_ != nullptr) return workers_.get();
  CAISSON_ASSIGN(auto workers, cli::OpenIsolation(options_.isolation));
  CAISSON_TRY(workers->Warm());
  workers_ = std::move(workers);
  return workers_.get();
}

}  // namespace caisson::capi
