// SPDX-License-Identifier: Apache-2.0
// Python 3.12 source to AST. Never recurses or allocates without bound: nesting and size end in a
// SyntaxError of their own. Knows the language, no policy.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "python/arena.h"
#include "python/ast.h"

namespace caisson::python {

// A SyntaxError with CPython's message and position. `span` is unknown where CPython gives none.
struct SyntaxError {
  enum class Type : std::uint8_t { kSyntax, kIndentation, kTab, kTooDeep, kTooLarge };
  Type type = Type::kSyntax;
  std::string message;
  SourceSpan span;
};

struct ParseOptions {
  // true: `source` is text, as when CPython is given a str: a coding cookie is ignored and a leading
  // U+FEFF is an error. false: `source` is the bytes of a file: BOM and cookie are honoured
  // (UTF-8, ASCII and Latin-1; other encodings are an error).
  bool is_text = false;
  std::size_t max_bytes = 64u << 20;
};

// A parsed module. Owns the arena of its nodes and a copy of the (decoded, as written) source.
class Tree {
 public:
  const Module& module() const { return *module_; }
  // The decoded source as UTF-8, line endings as written.
  std::string_view source() const { return source_; }

  // Filled by the parser.
  std::unique_ptr<Arena> arena_;
  Module* module_ = nullptr;
  std::string source_;
};

std::expected<Tree, SyntaxError> Parse(std::string_view source, const ParseOptions& options = {});

}  // namespace caisson::python
