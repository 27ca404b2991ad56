// SPDX-License-Identifier: Apache-2.0
// The encodings that a core WebAssembly binary is made of: bytes, LEB128 integers, sections.
// Reading past the end gives nothing instead of a value; no input makes it read outside its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::wasm {

inline constexpr std::string_view kModuleHeader("\0asm\1\0\0\0", 8);
inline constexpr std::uint64_t kWasmPage = 64u << 10;

enum SectionId : std::uint8_t {
  kCustomSection = 0,
  kTypeSection = 1,
  kImportSection = 2,
  kFunctionSection = 3,
  kTableSection = 4,
  kMemorySection = 5,
  kGlobalSection = 6,
  kExportSection = 7,
  kStartSection = 8,
  kElementSection = 9,
  kCodeSection = 10,
  kDataSection = 11,
  kDataCountSection = 12,
  kTagSection = 13,
};

inline constexpr char kI32 = 0x7f;
inline constexpr char kMutable = 0x01;
inline constexpr char kI32Const = 0x41;
inline constexpr char kEnd = 0x0b;

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return at_ >= bytes_.size(); }
  std::string_view rest() const { return bytes_.substr(at_); }

  std::optional<std::uint8_t> Byte() {
    if (done()) return std::nullopt;
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }

  std::optional<std::uint32_t> Unsigned() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const std::optional<std::uint8_t> byte = Byte();
      if (!byte) return std::nullopt;
      value |= std::uint64_t{*byte & 0x7fu} << shift;
      if ((*byte & 0x80u) == 0) return static_cast<std::uint32_t>(value);
    }
    return std::nullopt;
  }

  // Bits beyond 32 are dropped; the engine refuses such a binary.
  std::optional<std::int32_t> Signed() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const std::optional<std::uint8_t> byte = Byte();
      if (!byte) return std::nullopt;
      value |= std::uint64_t{*byte & 0x7fu} << shift;
      if ((*byte & 0x80u) != 0) continue;
      if ((*byte & 0x40u) != 0) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int32_t>(value);
    }
    return std::nullopt;
  }

  std::optional<std::string_view> Take(std::size_t size) {
    if (size > bytes_.size() - at_) return std::nullopt;
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void AppendUnsigned(std::string& out, std::uint64_t value);
void AppendSigned(std::string& out, std::int64_t value);
void AppendSection(std::string& out, std::uint8_t id, std::string_view content);

// One after another; `ok()` false once a section is cut off or the header is none.
class SectionReader {
 public:
  struct Section {
    std::uint8_t id = 0;
    std::string_view content;
  };

  explicit SectionReader(std::string_view binary);
  std::optional<Section> Next();
  bool ok() const { return ok_; }

 private:
  Cursor cursor_;
  bool ok_;
};

}  // namespace caisson::wasm
