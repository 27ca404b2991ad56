// SPDX-License-Identifier: Apache-2.0
// Where things are in the linear memory of one artifact, the derived MicroPython named by
// kArtifactSha256: addresses of its types and state, forms of its objects. All of it is bound to
// those bytes; another artifact needs another table (docs/guest-python.md tells how to find it).
// The self-test and the layout test fail when an entry is wrong.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::isolate::layout {

inline constexpr std::string_view kArtifactSha256 =
    "5fdf9b2e2c934f01c12d6ac79db2294b7da862d5756b4be04ac56af5753e6ff3";

// A function (callee, positional count, keyword count, argument array) -> object: calls anything.
inline constexpr std::uint32_t kCallFunctionIndex = 371;
// A function (bytes) that raises MemoryError, and the only one that does: where every allocation
// ends that the heap has no room for.
inline constexpr std::uint32_t kAllocationFailedFunction = 390;
// Global 0 is the C stack's pointer.
inline constexpr std::uint32_t kStackPointerGlobal = 0;

// Words of the interpreter's state.
inline constexpr std::uint32_t kStackTop = 0x104d4;    // where scanning for roots ends
inline constexpr std::uint32_t kStackLimit = 0x104d8;  // bytes of C stack before RuntimeError
inline constexpr std::uint32_t kLastQstrPool = 0x104f8;

// The heap: 2 bits per block of 16 bytes in the table.
inline constexpr std::uint32_t kTableStart = 0x10734;
inline constexpr std::uint32_t kTableBytes = 0x10738;
inline constexpr std::uint32_t kPoolStart = 0x10740;
inline constexpr std::uint32_t kPoolEnd = 0x10744;
inline constexpr std::uint32_t kLastFreeTableIndex = 0x10748;
inline constexpr std::uint32_t kLastUsedBlock = 0x1074c;
inline constexpr std::uint32_t kBlockBytes = 16;

// Objects: small integers have bit 0 set, interned strings end in 0b010, the rest are addresses.
inline constexpr std::uint32_t kNone = 6;
inline constexpr std::uint32_t kFalse = 14;
inline constexpr std::uint32_t kTrue = 30;
inline constexpr std::uint32_t kEmptyTuple = 0x6ab0;
inline constexpr std::int32_t kSmallIntMax = (1 << 30) - 1;
inline constexpr std::int32_t kSmallIntMin = -(1 << 30);

inline constexpr std::uint32_t kTypeStr = 0x69a4;     // hash, length, bytes
inline constexpr std::uint32_t kTypeBytes = 0x6950;   // as str
inline constexpr std::uint32_t kTypeFloat = 0x5dc8;   // (padding), double
inline constexpr std::uint32_t kTypeInt = 0x5f50;     // sign and allocation, length, 16-bit digits
inline constexpr std::uint32_t kTypeList = 0x5ff0;    // allocation, length, items
inline constexpr std::uint32_t kTypeTuple = 0x6ab8;   // length, items inline
inline constexpr std::uint32_t kTypeDict = 0x57c0;    // map: count << 3 | flags, allocation, table
inline constexpr std::uint32_t kTypeObject = 0x623c;  // a base that every class may name
inline constexpr std::uint32_t kTypeModule = 0x6108;  // globals (a dict)

// A type: its own type, flags | name << 16, one byte per slot, then the slots.
inline constexpr std::uint32_t kTypeFlagInstance = 0x0200;  // made by a class statement
inline constexpr std::uint32_t kTypeParentSlotByte = 18;
inline constexpr std::uint32_t kTypeSlots = 20;
// An instance of a class: its type, a map (3 words), then the object of its built-in base.
inline constexpr std::uint32_t kInstanceBase = 16;

inline constexpr std::uint32_t kMapFlagBits = 3;  // keys all interned, fixed, ordered

}  // namespace caisson::isolate::layout
