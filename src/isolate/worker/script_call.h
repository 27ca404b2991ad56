// SPDX-License-Identifier: Apache-2.0
// One streaming run from the supervisor's side: the job goes out, what comes back is checked,
// counted and handed on.
#pragma once

#include <stop_token>

#include "base/status.h"
#include "isolate/script.h"
#include "isolate/worker/process.h"
#include "isolate/worker/worker.h"

namespace caisson::isolate {

struct ScriptCallResult {
  Result<ScriptOutcome> outcome;
  bool worker_is_good = false;  // for another run
};

ScriptCallResult CallScript(WorkerProcess& worker, const WorkerOptions& options,
                            const ScriptJob& job, ScriptSink& sink, const std::stop_token& stop);

}  // namespace caisson::isolate
