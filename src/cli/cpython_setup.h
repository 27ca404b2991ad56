// SPDX-License-Identifier: Apache-2.0
// The runtime cpython on this host: where its artifact and its cache are, how both are filled, and
// whether it works. Everything heavy happens in processes of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "cli/console.h"
#include "isolate/cpython/options.h"
#include "isolate/worker/script_worker.h"

namespace caisson::cli {

// The artifact's and the cache's places come from the environment.
isolate::cpython::CPythonOptions CpythonOptions();

// Jailed workers that host it, with `memory_bytes` for each script; starts none yet. Arguments and
// memory of the options are set here, and the program unless it names one. Fails with
// cli.isolate_missing, wasm.artifact.
Result<std::unique_ptr<isolate::ScriptWorkerRuntime>> OpenCpythonWorkers(
    isolate::WorkerOptions options, std::uint64_t memory_bytes);

// Fetches what of the artifact is missing, as python-packages.toml and pins.json name it. Says how
// far it is. Fails with wasm.artifact, and cli.cancelled when asked to stop.
Result<void> FetchCpython(Console& console, const std::stop_token& stop);

// Compiles the artifact and makes its snapshots, unless the cache has them: some minutes, once.
// Says how far it is. Fails with isolate.not_prepared, and cli.cancelled when asked to stop.
Result<void> FillCpythonCache(Console& console, const std::stop_token& stop);

// Starts one worker, which tests itself. Fails as ScriptWorkerRuntime::Warm does.
Result<void> ProbeCpython();

}  // namespace caisson::cli
