// SPDX-License-Identifier: Apache-2.0
#include "wasm/detach.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "errors/wasm.h"
#include "wasm/binary.h"
#include "wasm/encoding.h"
#include "wasm/state_scan.h"

namespace caisson::wasm {
namespace {

std::unexpected<Status> Unsafe(std::string_view what) {
  return Fail(errors::kWasmSnapshotUnsafe,
              fmt::format("The memory of this module cannot be detached: {}.", what));
}

Result<std::uint64_t> LeastMemory(std::string_view content) {
  Cursor cursor(content);
  cursor.Unsigned();
  cursor.Unsigned();
  const std::optional<std::uint32_t> pages = cursor.Unsigned();
  if (!pages || *pages > 65536) return Unsafe("its memory has no size");
  return *pages * kWasmPage;
}

// The scan has seen that all globals are constant i32.
std::uint32_t GlobalStart(std::string_view content, std::uint32_t index) {
  Cursor cursor(content);
  cursor.Unsigned();
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i <= index; ++i) {
    cursor.Take(3);
    value = static_cast<std::uint32_t>(cursor.Signed().value_or(0));
    cursor.Byte();
  }
  return value;
}

Result<void> CopySegments(std::string_view content, std::uint64_t limit, std::string& memory) {
  Cursor cursor(content);
  const std::uint32_t count = cursor.Unsigned().value_or(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (cursor.Unsigned() != 0u) return Unsafe("it has a data segment that code places");
    if (cursor.Byte() != kI32Const) return Unsafe("a data segment has no constant place");
    const auto start = cursor.Signed();
    const bool ended = cursor.Byte() == kEnd;
    const auto size = cursor.Unsigned();
    const auto bytes = size ? cursor.Take(*size) : std::optional<std::string_view>();
    if (!start || !ended || !bytes) return Unsafe("its data is cut off");
    const std::uint64_t at = static_cast<std::uint32_t>(*start);
    if (at + bytes->size() > limit) return Unsafe("a data segment lies outside its memory");
    if (memory.size() < at + bytes->size()) memory.resize(at + bytes->size());
    std::memcpy(memory.data() + at, bytes->data(), bytes->size());
  }
  return {};
}

}  // namespace

Result<DetachedModule> Detach(std::string_view binary) {
  CAISSON_ASSIGN(const StateScan scan, ScanState(binary));
  DetachedModule detached;
  std::string rest(kModuleHeader);
  SectionReader sections(binary);
  while (const auto section = sections.Next()) {
    if (section->id == kCustomSection || section->id == kDataCountSection) continue;
    if (section->id == kDataSection) {
      CAISSON_TRY(CopySegments(section->content, detached.memory_bytes, detached.memory));
      continue;
    }
    if (section->id == kMemorySection) {
      CAISSON_ASSIGN(detached.memory_bytes, LeastMemory(section->content));
    }
    if (section->id == kGlobalSection) {
      detached.stack_pointer = GlobalStart(section->content, scan.mutable_global);
    }
    AppendSection(rest, section->id, section->content);
  }
  Rewrite rewrite;
  rewrite.exports = {{std::string(kStackPointerExport), ExternKind::kGlobal, scan.mutable_global}};
  CAISSON_ASSIGN(detached.binary, Apply(rest, rewrite));
  return detached;
}

}  // namespace caisson::wasm
