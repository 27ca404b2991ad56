// SPDX-License-Identifier: Apache-2.0
// The interpreter, started once with the harness loaded, frozen as a module that begins where the
// start ended; and instances of it. A Snapshot is immutable and thread-safe; an Instance belongs to
// one thread and to one call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "isolate/micropython/guest_memory.h"
#include "wasm/engine.h"
#include "wasm/module_cache.h"
#include "wasm/wasi.h"

namespace caisson::isolate {

// What an instance's memory differs by from the snapshot: whole pages of 4096 bytes.
struct PageDelta {
  std::vector<std::uint32_t> addresses;
  std::string bytes;  // one page each, in the same order

  std::size_t size() const { return bytes.size() + addresses.size() * sizeof(std::uint32_t); }
};

struct SnapshotOptions {
  std::uint64_t heap_bytes = 0;
  bool restricted = true;  // builtins cut down, imports refused
};

class Snapshot {
 public:
  // From the cache, else by starting the artifact and compiling the image (seconds).
  static Result<std::unique_ptr<Snapshot>> Make(wasm::Engine& engine,
                                                const wasm::ModuleCache& cache,
                                                std::string_view artifact,
                                                const SnapshotOptions& options);

  std::uint64_t heap_bytes() const { return options_.heap_bytes; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }  // of an instance at its start
  std::uint32_t load_function() const { return load_; }
  std::uint32_t call_function() const { return call_; }
  std::uint32_t check_function() const { return check_; }
  std::uint32_t stack_pointer() const { return stack_pointer_; }
  std::uint32_t builtins_module() const { return builtins_; }
  bool compiled_now() const { return compiled_; }

 private:
  friend class Instance;
  explicit Snapshot(const SnapshotOptions& options) : options_(options) {}
  Result<void> Adopt(wasm::Engine& engine, wasm::CachedModule cached);

  SnapshotOptions options_;
  wasm::ModuleHandle module_;
  wasm::LinkerHandle linker_;
  wasm::InstancePreHandle pre_;
  std::uint64_t memory_bytes_ = 0;
  std::uint32_t load_ = 0;
  std::uint32_t call_ = 0;
  std::uint32_t check_ = 0;
  std::uint32_t builtins_ = 0;
  std::uint32_t stack_pointer_ = 0;
  bool compiled_ = false;
  // The few words behind the heap that are not zero: kept out of the module, whose image would
  // otherwise span the whole heap.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tail_;
  std::string image_;  // from address 0; all behind it but the tail is zero
};

enum class CallEnd : std::uint8_t { kReturned, kFuel, kDeadline, kStack, kExit, kTrap };

struct CallResult {
  CallEnd end = CallEnd::kReturned;
  std::uint32_t object = 0;  // kReturned
  std::string detail;        // kTrap, kStack: the engine's words
};

class Instance {
 public:
  // Fails with wasm.engine. `context` is what the guest sees of WASI, and must outlive this.
  static Result<std::unique_ptr<Instance>> Make(wasm::Engine& engine, const Snapshot& snapshot,
                                                std::uint64_t memory_limit,
                                                wasm::WasiContext& context);

  GuestMemory memory();
  void Apply(const PageDelta& delta);
  // The pages that differ from the snapshot, as far as the interpreter's own tables say that they
  // are in use. To be asked between calls.
  PageDelta Difference();

  // The size of the last allocation for which the guest's heap had no room; 0 when there was none.
  // Kept where the guest cannot reach it.
  std::uint32_t failed_allocation();

  void SetFuel(std::uint64_t fuel);  // 0: endless
  std::uint64_t fuel();
  void SetDeadline(std::uint64_t epochs);

  // Calls a function object with positional arguments (at most kMaxArguments).
  static constexpr std::size_t kMaxArguments = 4;
  CallResult Call(std::uint32_t function, const std::vector<std::uint32_t>& arguments);

 private:
  Instance(const Snapshot& snapshot, wasm::WasiContext& context)
      : snapshot_(snapshot), context_(context) {}

  const Snapshot& snapshot_;
  wasm::WasiContext& context_;
  wasm::StoreHandle store_;
  wasmtime_context_t* store_context_ = nullptr;
  wasmtime_memory_t memory_{};
  wasmtime_func_t call_{};
  wasmtime_global_t failed_allocation_{};
};

}  // namespace caisson::isolate
