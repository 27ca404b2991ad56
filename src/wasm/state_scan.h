// SPDX-License-Identifier: Apache-2.0
// Whether the state of an instance is its linear memory and nothing else, found out by decoding
// every instruction. Only then is a copy of the memory a copy of the instance: a module that could
// also keep something in a table, in a global or in segments that it has dropped is refused. Not a
// validator (the engine is), but no input makes it read outside its bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

struct StateScan {
  std::uint64_t functions = 0;
  std::uint64_t instructions = 0;
  std::uint32_t mutable_global = 0;  // the only one there is: the C stack's pointer
};

// Fails with wasm.snapshot_unsafe, naming what breaks the assumption and in which function; what it
// cannot decode is refused as well.
Result<StateScan> ScanState(std::string_view binary);

}  // namespace caisson::wasm
