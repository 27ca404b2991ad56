// SPDX-License-Identifier: Apache-2.0
#include "workflow/body_parse.h"

#include <string>
#include <utility>

#include "workflow/compiler.h"

namespace caisson::workflow {
namespace {

// Canonical printing escapes what is not ASCII, so a body may be longer than any source.
constexpr std::size_t kMaxBodyBytes = 4 * kMaxSourceBytes;

// True when the first line that holds code is indented.
bool StartsIndented(std::string_view text) {
  std::size_t line = 0;
  while (line < text.size()) {
    const std::size_t code = text.find_first_not_of(" \t\f", line);
    if (code == std::string_view::npos) return false;
    const char c = text[code];
    if (c != '\n' && c != '\r' && c != '#') return text.find_first_of(" \t", line) < code;
    line = text.find_first_of("\r\n", code);
    if (line == std::string_view::npos) return false;
    ++line;
  }
  return false;
}

}  // namespace

std::expected<ParsedBody, python::SyntaxError> ParseBody(std::string_view text) {
  const python::ParseOptions options{.is_text = true, .max_bytes = kMaxBodyBytes};
  if (!StartsIndented(text)) {
    auto tree = python::Parse(text, options);
    if (!tree) return std::unexpected(std::move(tree).error());
    const auto statements = tree->module().body;
    return ParsedBody{std::move(*tree), statements, 1};
  }
  auto tree = python::Parse("if True:\n" + std::string(text), options);
  if (!tree) {
    python::SyntaxError error = std::move(tree).error();
    if (error.span.line > 1) {
      --error.span.line;
      if (error.span.end_line > 1) --error.span.end_line;
    }
    return std::unexpected(std::move(error));
  }
  const auto* block =
      python::IsA<python::If>(static_cast<const python::Stmt*>(tree->module().body.front()));
  if (tree->module().body.size() != 1 || !block->orelse.empty()) {
    const python::Stmt* stray =
        block->orelse.empty() ? tree->module().body[1] : block->orelse.front();
    SourceSpan span = stray->span;
    --span.line;
    --span.end_line;
    return std::unexpected(python::SyntaxError{python::SyntaxError::Type::kIndentation,
                                               "unindent does not match the body's first line",
                                               span});
  }
  const auto statements = block->body;
  return ParsedBody{std::move(*tree), statements, 2};
}

}  // namespace caisson::workflow
