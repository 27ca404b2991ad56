// SPDX-License-Identifier: Apache-2.0
// CPython's arenas (PyObjectArenaAllocator), one after the other in the address space: the kernel
// by itself scatters them between libraries, where they cannot become huge pages.
#include <linux/mman.h>
#include <stddef.h>
#include <stdint.h>

#include "isolate/native/guest/kernel.h"

namespace caisson::isolate::native {
namespace {

constexpr uint64_t kRoom = uint64_t{1} << 30;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr int kReadWrite = 3;
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

// The next arena's place, if that lies in the room that is kept free for arenas.
uint64_t next_arena;
uint64_t room_end;

bool IsError(long result) { return result < 0 && result >= -4095; }

void KeepRoom() {
  const long room = Kernel(__NR_mmap, nullptr, kRoom, 0, kAnonymous | MAP_NORESERVE, -1, 0);
  if (IsError(room)) return;
  next_arena = (static_cast<uint64_t>(room) + kHugePage - 1) & ~(kHugePage - 1);
  room_end = static_cast<uint64_t>(room) + kRoom;
}

}  // namespace
}  // namespace caisson::isolate::native

extern "C" [[gnu::visibility("default")]] void* caisson_map(void*, size_t size) {
  using namespace caisson::isolate::native;
  if (next_arena == 0) KeepRoom();
  const bool fits = next_arena + size <= room_end;
  const long arena = Kernel(__NR_mmap, fits ? next_arena : 0, size, kReadWrite,
                            fits ? kAnonymous | MAP_FIXED : kAnonymous, -1, 0);
  if (IsError(arena)) return nullptr;
  if (fits) next_arena += size;
  return reinterpret_cast<void*>(arena);
}

// A call's limits count address space, so what it maps must not lie in room that is counted
// already.
extern "C" [[gnu::visibility("default")]] void caisson_leave_room() {
  using namespace caisson::isolate::native;
  if (next_arena < room_end) Kernel(__NR_munmap, next_arena, room_end - next_arena);
  room_end = 0;
}

extern "C" [[gnu::visibility("default")]] void caisson_unmap(void*, void* arena, size_t size) {
  using namespace caisson::isolate::native;
  Kernel(__NR_munmap, arena, size);
}
