// SPDX-License-Identifier: Apache-2.0
#include "wasm/encoding.h"

namespace caisson::wasm {

void AppendUnsigned(std::string& out, std::uint64_t value) {
  do {
    std::uint8_t byte = value & 0x7f;
    value >>= 7;
    if (value != 0) byte |= 0x80;
    out += static_cast<char>(byte);
  } while (value != 0);
}

void AppendSigned(std::string& out, std::int64_t value) {
  for (;;) {
    const std::uint8_t byte = value & 0x7f;
    value >>= 7;
    if ((value == 0 && (byte & 0x40) == 0) || (value == -1 && (byte & 0x40) != 0)) {
      out += static_cast<char>(byte);
      return;
    }
    out += static_cast<char>(byte | 0x80);
  }
}

void AppendSection(std::string& out, std::uint8_t id, std::string_view content) {
  out += static_cast<char>(id);
  AppendUnsigned(out, content.size());
  out += content;
}

SectionReader::SectionReader(std::string_view binary)
    : cursor_(binary.starts_with(kModuleHeader) ? binary.substr(kModuleHeader.size())
                                                : std::string_view()),
      ok_(binary.starts_with(kModuleHeader)) {}

std::optional<SectionReader::Section> SectionReader::Next() {
  if (!ok_ || cursor_.done()) return std::nullopt;
  const std::uint8_t id = *cursor_.Byte();
  const std::optional<std::uint32_t> size = cursor_.Unsigned();
  const std::optional<std::string_view> content =
      size ? cursor_.Take(*size) : std::optional<std::string_view>();
  ok_ = content.has_value();
  if (!ok_) return std::nullopt;
  return Section{id, *content};
}

}  // namespace caisson::wasm
