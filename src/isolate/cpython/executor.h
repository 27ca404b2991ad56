// SPDX-License-Identifier: Apache-2.0
// Runs scripts in CPython for WebAssembly: each in a fresh copy, made copy-on-write, of an
// interpreter that has its libraries imported already. Nothing of one run is seen by another.
//
// What the process needs. Create() reads the artifacts and the cache and maps both; it compiles
// nothing. It also runs one script on each set, which is the self-test and brings the pages that
// runs use. After that, nothing opens a file, a socket or a process, so the process may be sealed.
// At run time: threads and futexes, mmap, munmap, mprotect and madvise, clock_gettime and sleeps,
// getrandom (the guest's entropy), an ioctl or pread on the descriptor that pagemap_descriptor()
// names, and what the engine's trap handlers need (isolate/micropython/executor.h). Address space:
// some 4 GiB are *reserved* per concurrent run. Execute wants a thread with stack_bytes() of stack.
#pragma once

#include <memory>

#include "base/status.h"
#include "isolate/cpython/options.h"
#include "isolate/script_executor.h"
#include "wasm/memory_slots.h"

namespace caisson::isolate::cpython {

class CPythonExecutor : public ScriptExecutor {
 public:
  // Fails with isolate.not_prepared, wasm.artifact, wasm.cache, wasm.engine, isolate.self_test.
  static Result<std::unique_ptr<CPythonExecutor>> Create(const CPythonOptions& options);

  // For a seal; -1: none.
  virtual int pagemap_descriptor() const = 0;
  virtual wasm::SlotStats SlotsOf(std::string_view set) const = 0;
  // The set that a script with these imports would run in.
  virtual std::string ChooseSet(const std::vector<std::string>& imports) const = 0;
};

}  // namespace caisson::isolate::cpython
