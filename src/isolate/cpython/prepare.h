// SPDX-License-Identifier: Apache-2.0
// Makes what the runtime needs and finds in its cache from then on: the compiled code (once per
// artifact, engine and processor) and the snapshots (once per set and tenant). Compiling takes two
// to three minutes of all cores, some 2.5 GB of memory while it lasts and 240 MB of disk.
//
// It can be ended at any time by ending the process, and leaves nothing half done: entries appear
// when they are complete. It cannot go on from the middle of a compilation: the engine's C API has
// no incremental one.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "isolate/cpython/options.h"

namespace caisson::isolate::cpython {

struct PrepareProgress {
  std::string step;  // "compile", "snapshot pandas"
  std::string text;  // a line for a person
  std::chrono::seconds elapsed{0};
  double done = -1;  // of this step, 0 to 1, estimated; -1: not known
};

// Called from several threads, one at a time.
using OnPrepareProgress = std::function<void(const PrepareProgress&)>;

// Blocks; does nothing that is done already, and makes anew what is damaged. Two processes may
// prepare at once: the second waits. `stop` ends it between two steps and while a snapshot is made,
// not while code is compiled. Fails with wasm.artifact, wasm.cache, wasm.snapshot_unsafe,
// wasm.engine, isolate.self_test.
Result<void> Prepare(const CPythonOptions& options, const OnPrepareProgress& progress,
                     const std::stop_token& stop);

}  // namespace caisson::isolate::cpython
