// SPDX-License-Identifier: Apache-2.0
#include "wasm/state_scan.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "errors/wasm.h"
#include "wasm/encoding.h"

namespace caisson::wasm {
namespace {

std::unexpected<Status> Unsafe(std::string_view what) {
  return Fail(errors::kWasmSnapshotUnsafe,
              fmt::format("This module cannot be restored from a copy of its memory: {}.", what));
}

// Reads the code of one function. `bad_` is set at the first thing that is not allowed or not
// known; reading goes on over zeros until the caller looks.
class Instructions {
 public:
  Instructions(std::string_view code, std::uint32_t mutable_global)
      : at_(code.data()), end_(code.data() + code.size()), mutable_global_(mutable_global) {}

  // The number of instructions; what is wrong is in problem().
  std::uint64_t Scan() {
    SkipLocals();
    std::uint64_t count = 0;
    while (at_ < end_ && problem_.empty()) {
      Instruction(Byte());
      ++count;
    }
    return count;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::uint8_t Byte() {
    if (at_ == end_) {
      Refuse("a function is cut off");
      return 0;
    }
    return static_cast<std::uint8_t>(*at_++);
  }
  std::uint64_t Leb() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = Byte();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    Refuse("an integer does not end");
    return value;
  }
  void Skip(std::uint64_t bytes) {
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) return Refuse("a function is cut off");
    at_ += bytes;
  }
  void Lebs(std::uint64_t count) {
    while (count-- > 0 && problem_.empty()) Leb();
  }
  void Refuse(std::string_view why) {
    if (problem_.empty()) problem_ = why;
    at_ = end_;
  }

  void SkipLocals() {
    for (std::uint64_t groups = Leb(); groups > 0 && problem_.empty(); --groups) {
      Leb();
      const std::uint8_t type = Byte();
      if (type == 0x63 || type == 0x64) Leb();
    }
  }

  void MemoryArgument() {
    constexpr std::uint64_t kNamesMemory = 64;
    if ((Leb() & kNamesMemory) != 0) return Refuse("it has more than one memory");
    Leb();
  }

  void Instruction(std::uint8_t op) {
    if (op >= 0x45 && op <= 0xc4) return;
    if (op >= 0x28 && op <= 0x3e) return MemoryArgument();
    if (op >= 0x20 && op <= 0x26) return Variable(op);
    switch (op) {
      case 0x00:
      case 0x01:
      case 0x05:
      case 0x0a:
      case 0x0b:
      case 0x0f:
      case 0x1a:
      case 0x1b:
      case 0xd1:
      case 0xd3:
        return;
      case 0x02:
      case 0x03:
      case 0x04:
      case 0x08:
      case 0x0c:
      case 0x0d:
      case 0x10:
      case 0x12:
      case 0x14:
      case 0x15:
      case 0x3f:
      case 0x40:
      case 0x41:
      case 0x42:
      case 0xd0:
      case 0xd2:
      case 0xd4:
      case 0xd5:
      case 0xd6:
        return static_cast<void>(Leb());
      case 0x0e:
        return Lebs(Leb() + 1);
      case 0x11:
      case 0x13:
        return Lebs(2);
      case 0x1c:
        return Lebs(Leb());
      case 0x1f:
        return TryTable();
      case 0x43:
        return Skip(4);
      case 0x44:
        return Skip(8);
      case 0xfc:
        return Bulk(Leb());
      case 0xfd:
        return Vector(Leb());
      default:
        return Refuse(fmt::format("it has an instruction that is not known here ({:#04x})", op));
    }
  }

  void Variable(std::uint8_t op) {
    const std::uint64_t index = Leb();
    if (op == 0x24 && index != mutable_global_) {
      Refuse(fmt::format("it sets global {} beside the stack's pointer", index));
    }
    if (op == 0x26) Refuse("it changes a table (table.set)");
  }

  void TryTable() {
    Leb();
    for (std::uint64_t clauses = Leb(); clauses > 0 && problem_.empty(); --clauses) {
      constexpr std::uint8_t kCatchAll = 2;
      if (Byte() < kCatchAll) Leb();
      Leb();
    }
  }

  void Bulk(std::uint64_t op) {
    constexpr std::uint64_t kFirst = 8;
    struct Entry {
      std::string_view forbidden;
      int immediates;
    };
    static constexpr std::array<Entry, 10> kOps = {{
        {"memory.init", 2},
        {"data.drop", 1},
        {"", 2},  // memory.copy
        {"", 1},  // memory.fill
        {"table.init", 2},
        {"elem.drop", 1},
        {"table.copy", 2},
        {"table.grow", 1},
        {"", 1},  // table.size
        {"table.fill", 1},
    }};
    if (op < kFirst) return;
    if (op >= kFirst + kOps.size()) return Refuse("it has an instruction that is not known here");
    const Entry& entry = kOps[op - kFirst];
    if (!entry.forbidden.empty()) {
      return Refuse(fmt::format("it keeps state outside its memory ({})", entry.forbidden));
    }
    Lebs(static_cast<std::uint64_t>(entry.immediates));
  }

  void Vector(std::uint64_t op) {
    if (op <= 11 || op == 92 || op == 93) return MemoryArgument();
    if (op == 12 || op == 13) return Skip(16);
    if (op >= 21 && op <= 34) return Skip(1);
    if (op >= 84 && op <= 91) {
      MemoryArgument();
      return Skip(1);
    }
    if (op > 0x113) Refuse("it has a vector instruction that is not known here");
  }

  const char* at_;
  const char* const end_;
  const std::uint32_t mutable_global_;
  std::string problem_;
};

// The index of the one mutable global.
Result<std::uint32_t> FindMutableGlobal(std::string_view content) {
  Cursor cursor(content);
  const std::uint32_t count = cursor.Unsigned().value_or(0);
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto type = cursor.Byte();
    const auto mutability = cursor.Byte();
    if (type != kI32 || !mutability) return Unsafe("it has a global that is no i32");
    if (cursor.Byte() != kI32Const || !cursor.Signed() || cursor.Byte() != kEnd) {
      return Unsafe("a global does not start as a constant");
    }
    if (*mutability != kMutable) continue;
    if (found) return Unsafe("it has more than one mutable global");
    found = i;
  }
  if (!found) return Unsafe("it has no mutable global, so no stack's pointer");
  return *found;
}

Result<void> CheckOneMemory(std::string_view content) {
  Cursor cursor(content);
  // Bit 0 of the flags: it has a maximum; the others: shared, 64 bits wide, pages of another size.
  if (cursor.Unsigned() != 1u || cursor.Unsigned().value_or(2) > 1) {
    return Unsafe("it does not have exactly one plain memory");
  }
  return {};
}

Result<void> CheckImports(std::string_view content) {
  Cursor cursor(content);
  const std::uint32_t count = cursor.Unsigned().value_or(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (int name = 0; name < 2; ++name) {
      const auto size = cursor.Unsigned();
      if (!size || !cursor.Take(*size)) return Unsafe("its imports are cut off");
    }
    if (cursor.Byte() != 0 || !cursor.Unsigned()) {
      return Unsafe("it imports something that is no function");
    }
  }
  return {};
}

Result<void> ScanCode(std::string_view content, StateScan& scan) {
  Cursor cursor(content);
  const std::uint32_t count = cursor.Unsigned().value_or(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto size = cursor.Unsigned();
    const auto code = size ? cursor.Take(*size) : std::optional<std::string_view>();
    if (!code) return Unsafe("its code is cut off");
    Instructions function(*code, scan.mutable_global);
    scan.instructions += function.Scan();
    if (!function.problem().empty()) {
      return Unsafe(fmt::format("{} in function {} of its code", function.problem(), i));
    }
    ++scan.functions;
  }
  return {};
}

Result<void> ScanSection(const SectionReader::Section& section, StateScan& scan, bool& global) {
  switch (section.id) {
    case kImportSection:
      return CheckImports(section.content);
    case kMemorySection:
      return CheckOneMemory(section.content);
    case kGlobalSection: {
      CAISSON_ASSIGN(scan.mutable_global, FindMutableGlobal(section.content));
      global = true;
      return {};
    }
    case kStartSection:
      return Unsafe("it runs code while it is instantiated");
    case kCodeSection:
      if (!global) return Unsafe("it has no global");
      return ScanCode(section.content, scan);
    default:
      return {};
  }
}

}  // namespace

Result<StateScan> ScanState(std::string_view binary) {
  SectionReader sections(binary);
  StateScan scan;
  bool global = false;
  bool memory = false;
  while (const auto section = sections.Next()) {
    CAISSON_TRY(ScanSection(*section, scan, global));
    memory |= section->id == kMemorySection;
  }
  if (!sections.ok()) return Unsafe("a section is cut off");
  if (!memory || scan.functions == 0) return Unsafe("it has no memory or no code");
  return scan;
}

}  // namespace caisson::wasm
