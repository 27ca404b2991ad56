// SPDX-License-Identifier: Apache-2.0
#include "wasm/engine.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

#include "errors/wasm.h"
#include "wasm/address_space.h"
#include "wasm/memory_creator.h"

namespace caisson::wasm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(1);

// How long the ticker goes on with nothing running, so that calls in a row do not wake it each.
constexpr int kIdleTicks = 200;

// Of each memory; the engine's own defaults, which let it leave out the checks of bounds.
constexpr std::uint64_t kReservation = std::uint64_t{4} << 30;
constexpr std::uint64_t kGuard = 32u << 20;
// Compiled code, threads' stacks, the heap.
constexpr std::uint64_t kBesidePool = 512u << 20;
// A second memory for each slot, for the engine's own heap, where exceptions in flight are kept.
constexpr std::uint32_t kMemoriesPerSlot = 2;

struct PoolingDelete {
  void operator()(wasmtime_pooling_allocation_config_t* config) const {
    wasmtime_pooling_allocation_config_delete(config);
  }
};

void SetPooling(wasm_config_t* config, const EngineOptions& options) {
  std::unique_ptr<wasmtime_pooling_allocation_config_t, PoolingDelete> pool(
      wasmtime_pooling_allocation_config_new());
  wasmtime_pooling_allocation_config_t* p = pool.get();
  wasmtime_pooling_allocation_config_total_core_instances_set(p, options.slots);
  wasmtime_pooling_allocation_config_total_memories_set(p, kMemoriesPerSlot * options.slots);
  wasmtime_pooling_allocation_config_total_tables_set(p, options.slots);
  wasmtime_pooling_allocation_config_total_gc_heaps_set(p, options.slots);
  wasmtime_pooling_allocation_config_total_component_instances_set(p, 1);
  wasmtime_pooling_allocation_config_total_stacks_set(p, 0);
  wasmtime_pooling_allocation_config_max_memories_per_module_set(p, 1);
  wasmtime_pooling_allocation_config_max_tables_per_module_set(p, 1);
  wasmtime_pooling_allocation_config_max_memory_size_set(p, options.max_memory_bytes);
  wasmtime_pooling_allocation_config_max_unused_warm_slots_set(p, options.slots);
  wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(p,
                                                                     options.keep_resident_bytes);
  wasmtime_pooling_allocation_config_table_keep_resident_set(p, 64u << 10);
  wasmtime_pooling_allocation_strategy_set(config, p);
}

wasm_config_t* CommonConfig(std::size_t max_wasm_stack_bytes) {
  wasm_config_t* config = wasm_config_new();
  wasmtime_config_wasm_exceptions_set(config, true);
  wasmtime_config_wasm_threads_set(config, false);
  wasmtime_config_wasm_memory64_set(config, false);
  wasmtime_config_wasm_multi_memory_set(config, false);
  wasmtime_config_epoch_interruption_set(config, true);
  wasmtime_config_memory_init_cow_set(config, true);
  wasmtime_config_native_unwind_info_set(config, false);
  wasmtime_config_max_wasm_stack_set(config, max_wasm_stack_bytes);
  // Not used, but must not be smaller.
  wasmtime_config_async_stack_size_set(config, max_wasm_stack_bytes);
  return config;
}

wasm_config_t* PoolingConfig(const EngineOptions& options) {
  wasm_config_t* config = CommonConfig(options.max_wasm_stack_bytes);
  wasmtime_config_consume_fuel_set(config, true);
  wasmtime_config_memory_reservation_set(config, kReservation);
  wasmtime_config_memory_guard_size_set(config, kGuard);
  SetPooling(config, options);
  return config;
}

wasm_config_t* MappedConfig(const MappedEngineOptions& options) {
  wasm_config_t* config = CommonConfig(options.max_wasm_stack_bytes);
  wasmtime_config_consume_fuel_set(config, options.fuel);
  wasmtime_config_memory_may_move_set(config, false);
  wasmtime_config_memory_reservation_set(config, kSlotReservation);
  wasmtime_config_memory_guard_size_set(config, kSlotGuard);
  wasmtime_memory_creator_t creator = MakeMemoryCreator();
  wasmtime_config_host_memory_creator_set(config, &creator);
  return config;
}

// What the code generator may have looked at.
std::string CpuFingerprint() {
#if defined(__x86_64__)
  std::string text = "x86_64";
  for (const auto& [leaf, subleaf] : {std::pair{1u, 0u}, {7u, 0u}, {7u, 1u}, {0x80000001u, 0u}}) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d) == 0) continue;
    // Leaf 1's eax and ebx name the stepping and the running CPU, not features.
    text += leaf == 1 ? fmt::format(" {:x}-{:x}", c, d) : fmt::format(" {:x}-{:x}-{:x}", b, c, d);
  }
  return text;
#else
  return fmt::format("hwcap {:x} {:x}", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#endif
}

}  // namespace

std::uint64_t AddressSpaceNeeded(const EngineOptions& options) {
  const std::uint64_t memories = std::uint64_t{kMemoriesPerSlot} * options.slots;
  return memories * (kReservation + kGuard) + kGuard + kBesidePool;
}

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  CAISSON_TRY(CheckAddressSpace(
      AddressSpaceNeeded(options),
      fmt::format("The WebAssembly engine with {} slots for instances", options.slots)));
  EngineHandle engine(wasm_engine_new_with_config(PoolingConfig(options)));
  if (!engine) {
    return Fail(errors::kWasmEngine,
                fmt::format("The WebAssembly engine could not be made with {} slots of {} bytes.",
                            options.slots, options.max_memory_bytes));
  }
  return std::unique_ptr<Engine>(new Engine(std::move(engine), "exceptions fuel epoch cow"));
}

Result<std::unique_ptr<Engine>> Engine::CreateMapped(const MappedEngineOptions& options) {
  EngineHandle engine(wasm_engine_new_with_config(MappedConfig(options)));
  if (!engine) {
    return Fail(errors::kWasmEngine,
                fmt::format("The WebAssembly engine could not be made with a stack of {} bytes.",
                            options.max_wasm_stack_bytes));
  }
  const std::string_view flags =
      options.fuel ? "exceptions fuel epoch mapped" : "exceptions epoch mapped";
  return std::unique_ptr<Engine>(new Engine(std::move(engine), std::string(flags)));
}

Engine::Engine(EngineHandle engine, const std::string& flags)
    : engine_(std::move(engine)),
      fingerprint_(fmt::format("wasmtime {}; {}; {}", WASMTIME_VERSION, flags, CpuFingerprint())),
      ticker_([this](const std::stop_token& stop) { Tick(stop); }) {}

Engine::~Engine() {
  ticker_.request_stop();
  ticker_.join();
}

void Engine::Tick(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  int idle = 0;
  Clock::time_point last = Clock::now();
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kTick);
    // A sleep is longer than asked, and much longer on a busy machine: count the time, not the
    // turns.
    for (; Clock::now() - last >= kTick; last += kTick) {
      wasmtime_engine_increment_epoch(engine_.get());
    }
    idle = running_.load(std::memory_order_relaxed) == 0 ? idle + 1 : 0;
    if (idle < kIdleTicks) continue;
    std::unique_lock lock(mutex_);
    // Announced before running_ is read again: a call that starts now either sees the flag and
    // wakes us, or is seen here.
    asleep_.store(true, std::memory_order_seq_cst);
    wake_.wait(lock, stop, [this] { return running_.load(std::memory_order_seq_cst) != 0; });
    asleep_.store(false, std::memory_order_seq_cst);
    idle = 0;
    last = Clock::now();
  }
}

Engine::Ticking::Ticking(Engine& engine) : engine_(engine) {
  engine_.running_.fetch_add(1, std::memory_order_seq_cst);
  if (!engine_.asleep_.load(std::memory_order_seq_cst)) return;
  std::lock_guard lock(engine_.mutex_);
  engine_.wake_.notify_one();
}

Engine::Ticking::~Ticking() { engine_.running_.fetch_sub(1, std::memory_order_seq_cst); }

std::uint64_t Engine::EpochsFor(milliseconds duration) {
  // The current epoch is already under way.
  return duration.count() <= 0 ? 1 : static_cast<std::uint64_t>(duration.count()) + 1;
}

}  // namespace caisson::wasm
