// SPDX-License-Identifier: Apache-2.0
// The parts of Render (diagnostic.h): one function per form, and what they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/body_text.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow::internal {

// A span for people and tools: lines and columns from 1, columns in code points, the end exclusive.
// line == 0: no place is known.
struct Region {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t end_line = 0;
  std::uint32_t end_column = 0;
};

// Turns spans into regions. Remembers where it counted last, so that many diagnostics on one long
// line cost one pass over it.
class Regions {
 public:
  explicit Regions(const SourceLines& lines) : lines_(lines) {}

  Region Of(const SourceSpan& span);
  // The bytes of line `line` without its line break; empty beyond the end.
  std::string_view LineText(std::uint32_t line) const;

 private:
  std::uint32_t ColumnOf(std::uint32_t line, std::uint32_t byte_column);

  const SourceLines& lines_;
  std::uint32_t line_ = 0;
  std::size_t bytes_ = 0;
  std::uint32_t code_points_ = 0;
};

// `text` with what is not UTF-8 (lone surrogates too) replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

std::string RenderText(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                       Regions& regions, bool color);
std::string RenderJson(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                       Regions& regions);
std::string RenderSarif(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                        Regions& regions);

}  // namespace caisson::workflow::internal
