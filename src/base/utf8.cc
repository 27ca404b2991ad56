// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace caisson {

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    const bool out_of_range = (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90);
    return follows(1) && follows(2) && follows(3) && !out_of_range ? 4 : 0;
  }
  return 0;
}

std::uint32_t CodePoint(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  std::uint32_t value = lead & (0x7FU >> character.size());
  for (const char c : character.substr(1)) {
    value = (value << 6) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return value;
}

std::string Shortened(std::string_view text, std::size_t most) {
  std::string kept;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const std::size_t step = length == 0 ? 1 : length;
    if (used + step > most) return kept + "…";
    used += step;
    kept += length == 0 ? std::string_view("\ufffd") : text.substr(0, length);
    text.remove_prefix(step);
  }
  return kept;
}

}  // namespace caisson
