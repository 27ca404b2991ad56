// SPDX-License-Identifier: Apache-2.0
// The MicroPython runtime: the pinned artifact in its derived form, restored from a memory snapshot
// for every call. Each call gets a fresh instance; nothing of one call is seen by another.
//
// What the process needs. Create() reads the artifact and the module cache, may compile and write
// the cache (seconds, several threads), maps memory and runs the self-test. After that, nothing
// opens a file, a socket or a process, so the process may be sealed. At run time an Executor uses:
// threads and futexes (one ticker thread, made by Create, wakes each millisecond while calls run
// and sleeps otherwise; Execute makes no thread), mmap/munmap/mprotect/madvise, clock_gettime,
// clock_nanosleep, sigaltstack, rt_sigprocmask and rt_sigreturn. Wasmtime installs process-wide
// handlers for SIGSEGV, SIGBUS, SIGILL and SIGFPE and turns guest traps into errors by them, so a
// seal must not kill on those signals. Address space: about 8 GiB is *reserved* (not used) per
// concurrent call, so RLIMIT_AS must be off or above that; RLIMIT_STACK (and the size of threads
// that call Execute) at least 4 MiB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "isolate/executor.h"

namespace caisson::isolate {

struct MicroPythonOptions {
  std::string artifact;   // path of derived.wasm; empty: DefaultMicroPythonArtifact()
  std::string cache_dir;  // compiled modules; empty: wasm::DefaultCacheDir()
  // A snapshot is made for each; a call whose Limits::heap_bytes is none of them is refused.
  std::vector<std::uint64_t> heap_sizes = {Limits{}.heap_bytes};
  std::uint32_t max_concurrent_calls = 8;  // instances alive at once; further calls wait
  std::uint64_t max_memory_bytes = Limits{}.memory_bytes;  // above it, a call's limit is clamped
  std::uint64_t body_cache_bytes = 64u << 20;              // compiled bodies kept, least recent out
  // Leaves every builtin and module in reach of the source. For probing the artifact only, never
  // for author code.
  bool unrestricted_for_probes = false;
};

// $CAISSON_DATA_DIR/micropython/derived.wasm, else the path known at build time.
std::string DefaultMicroPythonArtifact();

class MicroPythonExecutor : public Executor {
 public:
  // Fails with wasm.artifact (missing, or not the pinned bytes), wasm.cache (a cache directory that
  // cannot be trusted), wasm.limit_too_low (a heap size), wasm.address_space,
  // wasm.engine, isolate.self_test. Never falls back to something weaker.
  static Result<std::unique_ptr<Executor>> Create(const MicroPythonOptions& options = {});
};

}  // namespace caisson::isolate
