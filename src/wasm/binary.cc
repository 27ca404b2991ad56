// SPDX-License-Identifier: Apache-2.0
#include "wasm/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "errors/wasm.h"
#include "wasm/encoding.h"

namespace caisson::wasm {
namespace {

constexpr std::size_t kHostPage = 4096;

std::unexpected<Status> Malformed(std::string_view what) {
  return Fail(errors::kWasmEngine,
              fmt::format("The WebAssembly binary cannot be rewritten: {}.", what));
}

Result<std::string> WithExports(std::string_view content, const std::vector<AddedExport>& added) {
  Cursor cursor(content);
  const std::optional<std::uint32_t> count = cursor.Unsigned();
  if (!count) return Malformed("its export section is cut off");
  std::string out;
  AppendUnsigned(out, *count + added.size());
  out += cursor.rest();
  for (const AddedExport& item : added) {
    AppendUnsigned(out, item.name.size());
    out += item.name;
    out += static_cast<char>(item.kind);
    AppendUnsigned(out, item.index);
  }
  return out;
}

Result<std::string> WithMemoryMinimum(std::string_view content, std::uint64_t bytes) {
  Cursor cursor(content);
  if (cursor.Byte() != 1 || cursor.Byte() != 0) {
    return Malformed("it does not have exactly one memory without a maximum");
  }
  std::string out("\1\0", 2);
  AppendUnsigned(out, (bytes + kWasmPage - 1) / kWasmPage);
  return out;
}

Result<std::string> WithGlobal0(std::string_view content, std::uint32_t value) {
  Cursor cursor(content);
  const std::optional<std::uint32_t> count = cursor.Unsigned();
  if (!count || *count == 0 || cursor.Byte() != kI32 || cursor.Byte() != kMutable ||
      cursor.Byte() != kI32Const || !cursor.Unsigned() || cursor.Byte() != kEnd) {
    return Malformed("its global 0 is no mutable i32 with a constant start");
  }
  std::string out;
  AppendUnsigned(out, *count);
  out += kI32;
  out += kMutable;
  out += kI32Const;
  AppendSigned(out, static_cast<std::int32_t>(value));
  out += kEnd;
  out += cursor.rest();
  return out;
}

std::string DataOf(const std::vector<Segment>& segments) {
  std::string out;
  AppendUnsigned(out, segments.size());
  for (const Segment& segment : segments) {
    out += '\0';
    out += kI32Const;
    AppendSigned(out, static_cast<std::int32_t>(segment.address));
    out += kEnd;
    AppendUnsigned(out, segment.bytes.size());
    out += segment.bytes;
  }
  return out;
}

Result<std::string> RewriteSection(std::uint8_t id, std::string_view content,
                                   const Rewrite& rewrite) {
  if (id == kExportSection) return WithExports(content, rewrite.exports);
  if (!rewrite.replace_memory) return std::string(content);
  switch (id) {
    case kMemorySection:
      return WithMemoryMinimum(content, rewrite.memory_bytes);
    case kGlobalSection:
      return WithGlobal0(content, rewrite.global0);
    case kDataCountSection: {
      std::string count;
      AppendUnsigned(count, rewrite.segments.size());
      return count;
    }
    case kDataSection:
      return DataOf(rewrite.segments);
    default:
      return std::string(content);
  }
}

}  // namespace

Result<std::string> Apply(std::string_view binary, const Rewrite& rewrite) {
  if (!binary.starts_with(kModuleHeader)) return Malformed("it does not begin as a core module");
  SectionReader sections(binary);
  std::string out(kModuleHeader);
  std::uint32_t seen = 0;
  while (const auto section = sections.Next()) {
    if (section->id < 32) seen |= 1u << section->id;
    CAISSON_ASSIGN(const std::string changed,
                   RewriteSection(section->id, section->content, rewrite));
    AppendSection(out, section->id, changed);
  }
  if (!sections.ok()) return Malformed("a section is cut off");
  const auto has = [seen](SectionId id) { return (seen >> id & 1u) != 0; };
  if (!rewrite.exports.empty() && !has(kExportSection)) return Malformed("it exports nothing");
  if (rewrite.replace_memory &&
      !(has(kMemorySection) && has(kGlobalSection) && has(kDataSection))) {
    return Malformed("it lacks a memory, a global or data");
  }
  return out;
}

std::vector<Segment> NonZeroSegments(std::string_view memory) {
  std::vector<Segment> segments;
  std::size_t begin = 0;
  bool open = false;
  for (std::size_t at = 0; at < memory.size(); at += kHostPage) {
    const std::string_view page = memory.substr(at, kHostPage);
    const bool zero = std::ranges::all_of(page, [](char byte) { return byte == 0; });
    if (!zero && !open) begin = at;
    if (zero && open) {
      segments.push_back({static_cast<std::uint32_t>(begin), memory.substr(begin, at - begin)});
    }
    open = !zero;
  }
  if (open) segments.push_back({static_cast<std::uint32_t>(begin), memory.substr(begin)});
  return segments;
}

}  // namespace caisson::wasm
