// SPDX-License-Identifier: Apache-2.0
// The text that is migrated: places in it, edits of stretches of it, and lines of the result that
// know which line they come from. Pure functions of their input; views die with the Source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "python/ast.h"

namespace caisson::workflow::migrate {

// A line of the result, without its line end. `origin` is the line of the source that it comes
// from; 0: it is new.
struct Line {
  std::string text;
  std::uint32_t origin = 0;
};
using Lines = std::vector<Line>;

void Append(Lines& lines, const Lines& more);
// Text of ours, cut at line ends; a last line end gives no line of its own.
void AppendNew(Lines& lines, std::string_view text, std::uint32_t origin = 0);
std::string Join(const Lines& lines);

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Replacements of stretches of one source. Edits of inner nodes stay valid inside outer ones, as
// long as the outer ones are made before and only insert; what lies inside a replaced stretch is
// dropped.
class Edits {
 public:
  void Replace(Range range, std::string text);
  void Erase(Range range) { Replace(range, {}); }
  // Put around a stretch: of several at one place, the one that was made first is the outermost.
  void Open(std::size_t at, std::string text);
  void Close(std::size_t at, std::string text);
  void Wrap(Range range, std::string before, std::string after);

  struct Edit {
    Range range;
    std::string text;
    int order;  // among those that begin at one place
    long sequence;
  };
  // In the order in which they are to be made.
  std::vector<Edit> Sorted() const;

 private:
  std::vector<Edit> edits_;
};

class Source {
 public:
  explicit Source(std::string_view text);

  std::string_view text() const { return text_; }
  Range Of(const SourceSpan& span) const;
  std::string_view Text(const SourceSpan& span) const;
  std::uint32_t LineCount() const { return static_cast<std::uint32_t>(starts_.size()); }
  // Line `line` (from 1) without its line end; empty beyond the end.
  std::string_view LineText(std::uint32_t line) const;
  std::size_t LineStart(std::uint32_t line) const;
  std::size_t LineEnd(std::uint32_t line) const;  // where its line end stands
  std::uint32_t LineAt(std::size_t offset) const;

  // The first line of the comments that stand right above `line`, not below `after`.
  std::uint32_t CommentsAbove(std::uint32_t line, std::uint32_t after = 0) const;
  // Where the statement and a comment behind it end.
  std::size_t EndWithComment(const SourceSpan& span) const;

  // The stretch with `edits` made.
  Lines Render(Range range, const Edits& edits) const;
  // Lines [first, last], indented by `to` instead of `from` columns. Lines that begin inside a
  // string stay where they are. `edits` are made before.
  Lines Reindent(Range range, const Edits& edits, std::size_t from, std::size_t to) const;
  // Says which lines begin inside a string; docstrings do not count.
  void MarkStrings(const python::Module& module);

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;
  std::vector<bool> inside_string_;
};

}  // namespace caisson::workflow::migrate
