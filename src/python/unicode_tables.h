// SPDX-License-Identifier: Apache-2.0
// Tables that tools/gen_unicode.py makes at build time; only unicode.cc reads them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::python::unicode_tables {

struct UnicodeRange {
  std::uint32_t first;
  std::uint32_t last;  // inclusive
};

// Names in byte order, front-coded: length shared with the name before, length of the rest, the
// rest, three bytes of code point (big endian). Blocks of 16 names start with a whole one.
extern const std::uint8_t kNames[];
extern const std::size_t kNamesSize;
extern const std::uint32_t kNameBlocks[];  // offsets in kNames
extern const std::size_t kNameBlocksSize;

extern const UnicodeRange kIdeographs[];  // CJK unified ideographs
extern const std::size_t kIdeographsSize;
extern const UnicodeRange kIdentifierStart[];  // XID_Start
extern const std::size_t kIdentifierStartSize;
extern const UnicodeRange kIdentifierContinue[];  // XID_Continue
extern const std::size_t kIdentifierContinueSize;

}  // namespace caisson::python::unicode_tables
