// SPDX-License-Identifier: Apache-2.0
// Wasmtime engines of two kinds. In both, a deadline is an epoch that a ticker thread advances each
// millisecond while something runs.
// - Create: the pooling allocator, for small modules: memory slots are reserved once, images are
//   mapped copy-on-write. Fuel is always compiled in; a call without a limit gets an endless
//   amount.
// - CreateMapped: memories are the slots that PlacedSlot (wasm/memory_creator.h) names, for large
//   modules whose instances begin as a snapshot. Fuel is an option: it costs 5 to 50 % there, and
//   such calls are limited by time.
// An Engine is thread-safe and outlives every module and store made with it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "wasm/handles.h"

namespace caisson::wasm {

struct EngineOptions {
  std::uint32_t slots = 9;                         // instances alive at once
  std::size_t max_memory_bytes = 256u << 20;       // the most that one linear memory may reach
  std::size_t keep_resident_bytes = 256u << 10;    // reset by copying; what lies beyond by madvise
  std::size_t max_wasm_stack_bytes = 3072u << 10;  // of the calling thread's stack
};

// What an engine with these options reserves, and a little for what it does then.
std::uint64_t AddressSpaceNeeded(const EngineOptions& options);

struct MappedEngineOptions {
  bool fuel = false;
  // Of the calling thread's stack, which must be larger by some hundred KiB.
  std::size_t max_wasm_stack_bytes = 16u << 20;
};

class Engine {
 public:
  // Fails with wasm.address_space, wasm.engine.
  static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  static Result<std::unique_ptr<Engine>> CreateMapped(const MappedEngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  wasm_engine_t* get() const { return engine_.get(); }

  // All that compiled code depends on besides its module: engine version, flags, CPU.
  const std::string& fingerprint() const { return fingerprint_; }

  // While one lives, epochs pass. Cheap: a lock is taken only when the ticker sleeps.
  class Ticking {
   public:
    explicit Ticking(Engine& engine);
    ~Ticking();
    Ticking(const Ticking&) = delete;
    Ticking& operator=(const Ticking&) = delete;

   private:
    Engine& engine_;
  };

  // Epochs for a deadline that is not shorter than `duration`.
  static std::uint64_t EpochsFor(std::chrono::milliseconds duration);

 private:
  // `flags` name what the configuration adds to the code.
  Engine(EngineHandle engine, const std::string& flags);
  void Tick(const std::stop_token& stop);

  EngineHandle engine_;
  std::string fingerprint_;
  std::atomic<int> running_ = 0;
  std::atomic<bool> asleep_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread ticker_;  // last: stops before what it uses goes
};

}  // namespace caisson::wasm
