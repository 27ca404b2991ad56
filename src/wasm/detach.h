// SPDX-License-Identifier: Apache-2.0
// Takes the contents of its memory out of a module: what is left compiles to code without data, so
// that an instance starts from whatever memory it is given, at no cost per instance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// Part of the key of everything made from a detached module; raise it when Detach changes.
inline constexpr int kDetachVersion = 1;

inline constexpr std::string_view kStackPointerExport = "caisson.stack_pointer";

struct DetachedModule {
  std::string binary;               // no data, no custom sections, the mutable global exported
  std::string memory;               // what the data segments held, from address 0; zeros behind it
  std::uint64_t memory_bytes = 0;   // the least size of the memory
  std::uint32_t stack_pointer = 0;  // the first value of the mutable global
};

// Scans the module first (wasm/state_scan.h). Fails with wasm.snapshot_unsafe.
Result<DetachedModule> Detach(std::string_view binary);

}  // namespace caisson::wasm
