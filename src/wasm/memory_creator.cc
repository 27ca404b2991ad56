// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_creator.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace caisson::wasm {
namespace {

// The engine's own heap; a guest that throws without end must not fill the host with it.
constexpr std::uint64_t kMostPlainBytes = 64u << 20;

thread_local PlacedSlot* placed = nullptr;

struct SlotMemory {
  SlotPool& pool;
  std::unique_ptr<MemorySlot> slot;
};

struct PlainMemory {
  std::byte* base;
  std::uint64_t mapped;
  std::uint64_t size;
};

std::uint8_t* SlotGet(void* env, std::size_t* size, std::size_t* capacity) {
  const MemorySlot& slot = *static_cast<SlotMemory*>(env)->slot;
  *size = slot.size();
  *capacity = kSlotReservation;
  return reinterpret_cast<std::uint8_t*>(slot.data());
}

wasmtime_error_t* SlotGrow(void* env, std::size_t size) {
  if (static_cast<SlotMemory*>(env)->slot->Grow(size)) return nullptr;
  return wasmtime_error_new("the memory limit of this call is reached");
}

void SlotEnd(void* env) {
  const std::unique_ptr<SlotMemory> memory(static_cast<SlotMemory*>(env));
  memory->pool.Return(std::move(memory->slot));
}

std::uint8_t* PlainGet(void* env, std::size_t* size, std::size_t* capacity) {
  const auto& memory = *static_cast<PlainMemory*>(env);
  *size = memory.size;
  *capacity = memory.mapped;
  return reinterpret_cast<std::uint8_t*>(memory.base);
}

wasmtime_error_t* PlainGrow(void* env, std::size_t size) {
  auto& memory = *static_cast<PlainMemory*>(env);
  if (size > kMostPlainBytes || size > memory.mapped) {
    return wasmtime_error_new("the engine's own heap is full");
  }
  if (size > memory.size &&
      mprotect(memory.base + memory.size, size - memory.size, PROT_READ | PROT_WRITE) != 0) {
    return wasmtime_error_new("the engine's own heap cannot grow");
  }
  memory.size = size;
  return nullptr;
}

void PlainEnd(void* env) {
  const std::unique_ptr<PlainMemory> memory(static_cast<PlainMemory*>(env));
  munmap(memory->base, memory->mapped);
}

wasmtime_error_t* NewPlain(std::uint64_t least, std::uint64_t reserved, std::uint64_t guard,
                           wasmtime_linear_memory_t* out) {
  if (least > kMostPlainBytes || reserved > kSlotReservation || guard > kSlotReservation) {
    return wasmtime_error_new("a memory that no snapshot was placed for is too large");
  }
  const std::uint64_t mapped = std::max(reserved, kMostPlainBytes) + guard;
  void* at = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return wasmtime_error_new("no address space for the engine's own heap");
  auto memory = std::make_unique<PlainMemory>(static_cast<std::byte*>(at), mapped, 0);
  *out = {memory.get(), PlainGet, PlainGrow, PlainEnd};
  if (wasmtime_error_t* error = PlainGrow(memory.get(), least)) {
    munmap(at, mapped);
    return error;
  }
  static_cast<void>(memory.release());
  return nullptr;
}

}  // namespace

struct MemoryCreator {
  static wasmtime_error_t* New(void*, const wasm_memorytype_t*, std::size_t least, std::size_t,
                               std::size_t reserved, std::size_t guard,
                               wasmtime_linear_memory_t* out) {
    if (placed == nullptr || placed->taken() || placed->least_bytes_ != least) {
      return NewPlain(least, reserved, guard, out);
    }
    if (reserved > kSlotReservation || guard > kSlotGuard) {
      return wasmtime_error_new("the engine wants a larger reservation than a slot has");
    }
    *out = {new SlotMemory{placed->pool_, std::move(placed->slot_)}, SlotGet, SlotGrow, SlotEnd};
    return nullptr;
  }
};

PlacedSlot::PlacedSlot(SlotPool& pool, std::unique_ptr<MemorySlot> slot, std::uint64_t least_bytes)
    : pool_(pool), slot_(std::move(slot)), least_bytes_(least_bytes) {
  placed = this;
}

PlacedSlot::~PlacedSlot() {
  placed = nullptr;
  if (slot_ != nullptr) pool_.Return(std::move(slot_));
}

wasmtime_memory_creator_t MakeMemoryCreator() { return {nullptr, MemoryCreator::New, nullptr}; }

}  // namespace caisson::wasm
