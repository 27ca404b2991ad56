// SPDX-License-Identifier: Apache-2.0
// The form for people. Whatever a source holds, no control character of it reaches the terminal.
#include <algorithm>
#include <cstddef>
#include <string>

#include "base/foreign_text.h"
#include "base/utf8.h"
#include "workflow/diagnostic_format.h"

namespace caisson::workflow::internal {
namespace {

constexpr std::size_t kMaxShown = 120;  // cells of a source line
constexpr std::size_t kLead = 60;       // cells kept in front of the caret

struct Style {
  bool on;
  std::string operator()(std::string_view codes, std::string text) const {
    if (!on) return text;
    return "\x1b[" + std::string(codes) + "m" + std::move(text) + "\x1b[0m";
  }
};

// Terminal cells of a code point: the common wide ranges and combining marks.
std::size_t Cells(std::uint32_t c) {
  const auto within = [c](std::uint32_t first, std::uint32_t last) {
    return c >= first && c <= last;
  };
  if (within(0x300, 0x36F) || within(0x200B, 0x200F) || within(0xFE00, 0xFE0F)) return 0;
  const bool wide = within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                    within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) ||
                    within(0xFFE0, 0xFFE6) || within(0x1F300, 0x1FAFF) || within(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

struct Cell {
  std::string text;
  std::size_t width;
};

std::vector<Cell> CellsOf(std::string_view line) {
  const std::string valid = ValidUtf8(line);
  std::vector<Cell> cells;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = rest.substr(0, CharacterLength(rest));
    const std::uint32_t code_point = CodePoint(character);
    if (character == "\t") {
      cells.push_back({"    ", 4});
    } else if (IsUnsafeToShow(code_point)) {
      const std::string escape = EscapeOf(code_point);
      cells.push_back({escape, escape.size()});
    } else {
      cells.push_back({std::string(character), Cells(code_point)});
    }
    rest.remove_prefix(character.size());
  }
  return cells;
}

// The byte after the first `count` code points of `text`.
std::size_t SkipCodePoints(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (count > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
    --count;
  }
  return at;
}

// The part of a line around a caret; a line may be the whole file, so only what is shown is looked
// at.
struct Window {
  std::vector<Cell> cells;
  std::size_t caret;  // index into cells, or their number
  bool cut_before;
  bool cut_after;
};
Window WindowOf(std::string_view line, std::size_t caret_byte) {
  std::size_t begin = std::min(caret_byte, line.size());
  std::size_t before = 0;
  while (begin > 0 && before < kLead) {
    --begin;
    before += (line[begin] & 0xC0) != 0x80;
  }
  const std::string_view rest = line.substr(begin);
  const std::size_t shown = SkipCodePoints(rest, kMaxShown);
  return {CellsOf(rest.substr(0, shown)), before, begin > 0, shown < rest.size()};
}

// Blank up to the caret, `^` under its first cell, `~` under the `length - 1` that follow.
std::string Marks(const Window& window, std::size_t length) {
  std::string marks;
  for (std::size_t i = 0; i < std::min(window.caret, window.cells.size()); ++i) {
    marks.append(window.cells[i].width, ' ');
  }
  const std::size_t end = std::min(window.caret + length, window.cells.size());
  std::size_t width = 0;
  for (std::size_t i = window.caret; i < end; ++i) width += window.cells[i].width;
  marks += '^';
  if (width > 1) marks.append(width - 1, '~');
  return marks;
}

void AppendSnippet(std::string& out, const Region& region, std::string_view line,
                   std::size_t caret_byte, const Style& style) {
  if (line.empty()) return;
  const Window window = WindowOf(line, caret_byte);
  const bool one_line = region.end_line == region.line;
  const std::size_t length = one_line && region.end_column > region.column
                                 ? region.end_column - region.column
                             : one_line ? 1
                                        : window.cells.size();
  const std::string number = std::to_string(region.line);
  const std::string margin(std::max<std::size_t>(number.size(), 5), ' ');
  out += style("2", margin.substr(number.size()) + number + " | ");
  if (window.cut_before) out += "...";
  for (const Cell& cell : window.cells) out += cell.text;
  out += window.cut_after ? "...\n" : "\n";
  out += style("2", margin + " | ") + (window.cut_before ? "   " : "") +
         style("1;32", Marks(window, length)) + "\n";
}

void AppendDiagnostic(std::string& out, const Diagnostic& diagnostic, std::string_view file,
                      Regions& regions, const Style& style) {
  const Region region = regions.Of(diagnostic.span);
  std::string place = ShowForeignLine(file);
  if (region.line != 0) {
    place += ":" + std::to_string(region.line) + ":" + std::to_string(region.column);
  }
  const bool is_error = diagnostic.severity == Severity::kError;
  out += style("1", place + ":") + " " +
         (is_error ? style("1;31", "error:") : style("1;33", "warning:")) + " " +
         style("1", ShowForeign(diagnostic.message, "      | ")) + " [" +
         std::string(diagnostic.code.name) + "]\n";
  if (region.line != 0) {
    AppendSnippet(out, region, regions.LineText(region.line), diagnostic.span.column, style);
  }
  // A caret says it better.
  if (!diagnostic.path.empty() && region.line == 0)
    out += "      at: " + ShowForeignLine(diagnostic.path) + "\n";
  if (!diagnostic.hint.empty())
    out += "    help: " + ShowForeign(diagnostic.hint, "      | ") + "\n";
}

}  // namespace

std::string RenderText(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                       Regions& regions, bool color) {
  std::string out;
  const Style style{color};
  for (const Diagnostic& each : diagnostics) AppendDiagnostic(out, each, file, regions, style);
  return out;
}

}  // namespace caisson::workflow::internal
