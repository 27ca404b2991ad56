// SPDX-License-Identifier: Apache-2.0
// Rewriting of a core WebAssembly binary on the level of sections: exports added, the memory's
// contents, its least size and a global's first value replaced. The code section is never touched.
// Not a validator: the engine is; but no input makes it read outside its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::wasm {

enum class ExternKind : std::uint8_t { kFunction = 0, kTable = 1, kMemory = 2, kGlobal = 3 };

struct AddedExport {
  std::string name;
  ExternKind kind = ExternKind::kFunction;
  std::uint32_t index = 0;
};

// Bytes of linear memory at an address; the text they come from outlives the call only.
struct Segment {
  std::uint32_t address = 0;
  std::string_view bytes;
};

struct Rewrite {
  std::vector<AddedExport> exports;
  // When set: all data segments are replaced, the memory's minimum becomes `memory_bytes` (rounded
  // up to whole pages), and global 0 (a mutable i32) starts as `global0`.
  bool replace_memory = false;
  std::vector<Segment> segments;
  std::uint64_t memory_bytes = 0;
  std::uint32_t global0 = 0;
};

// Fails with wasm.engine when the binary does not have the form that the rewrite needs.
Result<std::string> Apply(std::string_view binary, const Rewrite& rewrite);

// The stretches of `memory` that are not zero, page by page (4096), neighbours joined.
std::vector<Segment> NonZeroSegments(std::string_view memory);

}  // namespace caisson::wasm
