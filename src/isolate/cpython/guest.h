// SPDX-License-Identifier: Apache-2.0
// The artifact's code, ready to be instantiated, and instances of it. A GuestModule is immutable
// and thread-safe; a Guest belongs to one thread and one run.
//
// The artifact is a reactor: `turn` runs Python source in a `__main__` that lives on and returns to
// the host with nothing left on any stack, so that a copy of the memory at that moment is a copy of
// the interpreter. The guest calls the host by `_host.call(bytes) -> bytes`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wasm/engine.h"
#include "wasm/handles.h"
#include "wasm/memory_slots.h"
#include "wasm/wasi_system.h"

namespace caisson::isolate::cpython {

// What a guest sees of its host beside files and clocks. The store's data.
class GuestSystem : public wasm::WasiSystem {
 public:
  using WasiSystem::WasiSystem;

  // The answer to `_host.call`; empty: the run ends here, by a trap.
  virtual std::optional<std::string> HostCall(std::string_view request) = 0;
  // Asked every few milliseconds while the guest computes. False: the run ends here, by a trap.
  virtual bool MayGoOn() = 0;
};

class GuestModule {
 public:
  // `engine` outlives this.
  static Result<std::unique_ptr<GuestModule>> Make(wasm::Engine& engine, wasm::ModuleHandle module);

  wasm::Engine& engine() const { return engine_; }

 private:
  friend class Guest;
  explicit GuestModule(wasm::Engine& engine) : engine_(engine) {}

  wasm::Engine& engine_;
  wasm::ModuleHandle module_;
  wasm::LinkerHandle linker_;
  wasm::InstancePreHandle pre_;
  std::uint64_t least_memory_ = 0;
};

// How a call of the guest ended.
struct GuestCall {
  enum class End : std::uint8_t { kReturned, kStopped, kStack, kExit, kTrap };
  End end = End::kReturned;
  std::int32_t value = 0;  // kReturned
  std::string detail;      // kTrap: the engine's words
  bool ok() const { return end == End::kReturned; }
};

class Guest {
 public:
  // A guest whose memory is the image of `pool`. `system` and `pool` outlive it. Fails with
  // wasm.engine, os.syscall.
  static Result<std::unique_ptr<Guest>> Make(const GuestModule& module, wasm::SlotPool& pool,
                                             GuestSystem& system, std::uint64_t memory_limit);
  ~Guest();

  // Once, and only for a memory that is the artifact's own first one.
  GuestCall Initialize();
  // Allocates in the guest and copies `text` there; 0 when it has no memory left.
  std::uint32_t Place(std::string_view text);
  // Runs source that was placed. Needs a thread with more stack than the engine's limit.
  GuestCall Turn(std::uint32_t address, std::uint32_t size);
  GuestCall Turn(std::string_view source);

  // Once no call will follow: the engine's clock need not run for this guest.
  void StopTicking() { ticking_.reset(); }

  std::int32_t stack_pointer() const;
  std::string_view memory() const {
    return {reinterpret_cast<const char*>(slot_->data()), slot_->size()};
  }
  bool growth_refused() const { return slot_->growth_refused(); }

 private:
  explicit Guest(GuestSystem& system) : system_(system) {}
  Result<wasmtime_func_t> Function(std::string_view name);
  GuestCall Call(const wasmtime_func_t& function, std::int32_t a, std::int32_t b);
  GuestCall::End EndOf(const wasm::TrapHandle& trap) const;

  GuestSystem& system_;
  const wasm::MemorySlot* slot_ = nullptr;
  wasm::StoreHandle store_;
  wasmtime_context_t* context_ = nullptr;
  wasmtime_instance_t instance_{};
  wasmtime_func_t turn_{};
  wasmtime_func_t allocate_{};
  wasmtime_global_t stack_pointer_{};
  std::optional<wasm::Engine::Ticking> ticking_;
};

}  // namespace caisson::isolate::cpython
