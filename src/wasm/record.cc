// SPDX-License-Identifier: Apache-2.0
#include "wasm/record.h"

#include <fmt/format.h>

#include <optional>

#include "errors/wasm.h"
#include "wasm/binary.h"
#include "wasm/encoding.h"

namespace caisson::wasm {
namespace {

constexpr char kLocalGet = 0x20;
constexpr char kGlobalSet = 0x24;
// Types of locals that are one byte: numbers, vectors and the short forms of references. The long
// forms begin with these two.
constexpr std::uint8_t kReference = 0x64;
constexpr std::uint8_t kNullableReference = 0x63;

std::unexpected<Status> Malformed(std::string_view what) {
  return Fail(errors::kWasmEngine,
              fmt::format("The WebAssembly binary cannot be rewritten: {}.", what));
}

// How many functions are imported; they come first in the count of functions.
Result<std::uint32_t> ImportedFunctions(std::string_view content) {
  Cursor cursor(content);
  const std::optional<std::uint32_t> count = cursor.Unsigned();
  if (!count) return Malformed("its import section is cut off");
  for (std::uint32_t i = 0; i < *count; ++i) {
    for (int name = 0; name < 2; ++name) {
      const std::optional<std::uint32_t> size = cursor.Unsigned();
      if (!size || !cursor.Take(*size)) return Malformed("its import section is cut off");
    }
    if (cursor.Byte() != static_cast<std::uint8_t>(ExternKind::kFunction) || !cursor.Unsigned()) {
      return Malformed("it imports something other than functions");
    }
  }
  return *count;
}

// Everything in a section with a count in front, and one item more.
Result<std::string> WithOneMore(std::string_view content, std::string_view item) {
  Cursor cursor(content);
  const std::optional<std::uint32_t> count = cursor.Unsigned();
  if (!count) return Malformed("a section is cut off");
  std::string out;
  AppendUnsigned(out, std::uint64_t{*count} + 1);
  out += cursor.rest();
  out += item;
  return out;
}

std::string GlobalItem() { return {kI32, kMutable, kI32Const, 0, kEnd}; }

std::string ExportItem(std::string_view name, std::uint32_t global) {
  std::string item;
  AppendUnsigned(item, name.size());
  item += name;
  item += static_cast<char>(ExternKind::kGlobal);
  AppendUnsigned(item, global);
  return item;
}

// The body of a function that first stores its first argument.
Result<std::string> Recording(std::string_view body, std::uint32_t global) {
  Cursor cursor(body);
  const std::optional<std::uint32_t> groups = cursor.Unsigned();
  if (!groups) return Malformed("a function is cut off");
  for (std::uint32_t i = 0; i < *groups; ++i) {
    const bool counted = cursor.Unsigned().has_value();
    const std::optional<std::uint8_t> type = cursor.Byte();
    if (!counted || !type || *type == kReference || *type == kNullableReference) {
      return Malformed("a function has locals of an unexpected form");
    }
  }
  std::string out(body.substr(0, body.size() - cursor.rest().size()));
  out += {kLocalGet, 0, kGlobalSet};
  AppendUnsigned(out, global);
  out += cursor.rest();
  return out;
}

// `function` counts from the first one that is not imported.
Result<std::string> WithRecording(std::string_view content, std::uint32_t function,
                                  std::uint32_t global) {
  Cursor cursor(content);
  const std::optional<std::uint32_t> count = cursor.Unsigned();
  if (!count || function >= *count) return Malformed("it has no function of that index");
  std::string out;
  AppendUnsigned(out, *count);
  for (std::uint32_t i = 0; i < *count; ++i) {
    const std::optional<std::uint32_t> size = cursor.Unsigned();
    const std::optional<std::string_view> body =
        size ? cursor.Take(*size) : std::optional<std::string_view>();
    if (!body) return Malformed("its code is cut off");
    if (i != function) {
      AppendUnsigned(out, body->size());
      out += *body;
      continue;
    }
    CAISSON_ASSIGN(const std::string recording, Recording(*body, global));
    AppendUnsigned(out, recording.size());
    out += recording;
  }
  return out;
}

}  // namespace

Result<std::string> RecordArgument(std::string_view binary, std::uint32_t function,
                                   std::string_view export_name) {
  if (!binary.starts_with(kModuleHeader)) return Malformed("it does not begin as a core module");
  SectionReader sections(binary);
  std::string out(kModuleHeader);
  std::uint32_t imported = 0;
  std::optional<std::uint32_t> global;
  bool exported = false;
  bool recorded = false;
  while (const auto section = sections.Next()) {
    std::string content(section->content);
    if (section->id == kImportSection) {
      CAISSON_ASSIGN(imported, ImportedFunctions(content));
    } else if (section->id == kGlobalSection) {
      global = Cursor(content).Unsigned();
      CAISSON_ASSIGN(content, WithOneMore(content, GlobalItem()));
    } else if (section->id == kExportSection && global) {
      CAISSON_ASSIGN(content, WithOneMore(content, ExportItem(export_name, *global)));
      exported = true;
    } else if (section->id == kCodeSection && global) {
      if (function < imported) return Malformed("the function to record is imported");
      CAISSON_ASSIGN(content, WithRecording(content, function - imported, *global));
      recorded = true;
    }
    AppendSection(out, section->id, content);
  }
  if (!sections.ok()) return Malformed("a section is cut off");
  if (!exported || !recorded) return Malformed("it lacks globals, exports or code");
  return out;
}

}  // namespace caisson::wasm
