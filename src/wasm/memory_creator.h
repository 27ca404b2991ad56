// SPDX-License-Identifier: Apache-2.0
// What an engine asks for its linear memories: a slot that was placed for it, or plain memory (for
// the engine's own heap, where exceptions in flight are kept).
#pragma once

#include <wasmtime.h>

#include <cstdint>
#include <memory>

#include "wasm/memory_slots.h"

namespace caisson::wasm {

// While one lives, the next memory with a least size of `least_bytes` that is made on this thread
// is this slot, which goes back to its pool when its instance ends. At most one on a thread.
class PlacedSlot {
 public:
  // `pool` outlives every instance in its slots.
  PlacedSlot(SlotPool& pool, std::unique_ptr<MemorySlot> slot, std::uint64_t least_bytes);
  ~PlacedSlot();
  PlacedSlot(const PlacedSlot&) = delete;
  PlacedSlot& operator=(const PlacedSlot&) = delete;

  bool taken() const { return slot_ == nullptr; }

 private:
  friend struct MemoryCreator;
  SlotPool& pool_;
  std::unique_ptr<MemorySlot> slot_;
  std::uint64_t least_bytes_;
};

// For wasmtime_config_host_memory_creator_set.
wasmtime_memory_creator_t MakeMemoryCreator();

}  // namespace caisson::wasm
