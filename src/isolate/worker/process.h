// SPDX-License-Identifier: Apache-2.0
// One worker process: started, sealed and ready, or not at all.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "isolate/worker/worker.h"
#include "jail/spawn.h"
#include "jail/walls.h"
#include "os/fd.h"

namespace caisson::isolate {

struct WorkerProcess {
  os::UniqueFd channel;  // declared first: the process ends before its channel goes
  jail::Jailed jailed;
  std::vector<jail::WallReport> walls;  // all of them, in the order of jail::Wall
  json::Value describe;                 // what its executor says of itself
};

// Blocks until the worker is ready, or until `stop` is readable. The process dies with the calling
// thread. Fails with jail.unavailable and with what the worker's factory failed with, both for
// good, and with isolate.worker_lost when it died, did not answer, which a second try may mend, or
// was stopped.
Result<WorkerProcess> StartWorker(const WorkerOptions& options, const os::UniqueFd& stop);

// What the process uses now.
std::uint64_t ResidentBytes(const WorkerProcess& worker);

}  // namespace caisson::isolate
