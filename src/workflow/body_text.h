// SPDX-License-Identifier: Apache-2.0
// The text of a body as it stands in the IR. It is data for people, hashes and the peer; what runs
// is made by PrepareBody (body.h). Stateless apart from the line index; safe for all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "python/ast.h"

namespace caisson::workflow {

// Where the lines of a source begin and end, made once per file; views of the source.
class SourceLines {
 public:
  explicit SourceLines(std::string_view source);

  std::string_view source() const { return source_; }
  // Lines as the parser counts them. `line` from 1; clamped to the source.
  std::size_t Offset(std::uint32_t line, std::uint32_t column) const;
  // Lines as Python's str.splitlines counts them (also at form feeds, U+2028 ...), `first` from 1,
  // `last` included, joined by newlines.
  std::string JoinSplitLines(std::uint32_t first, std::uint32_t last) const;

 private:
  std::string_view source_;
  std::vector<std::size_t> starts_;            // of the parser's lines
  std::vector<std::string_view> split_lines_;  // as str.splitlines gives them
};

struct BodyTextResult {
  std::string text;
  // Line 1 of `text` is this line of the file, and so on; 0 where they do not run side by side.
  std::uint32_t first_line = 0;
};

// The peer's text of the body of `run`: dedented lines of the source (the whole file, as parsed),
// or the statements' segments when the body starts on the signature's line. Where that text would
// not parse to the same AST (a decorated first statement, a body on the signature's last line, odd
// line separators, multi-line strings that dedenting shifts), the canonical printing instead.
BodyTextResult BodyText(const python::FunctionDef& run, const SourceLines& lines);
std::string BodyText(const python::FunctionDef& run, std::string_view source);

}  // namespace caisson::workflow
