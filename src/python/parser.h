// SPDX-License-Identifier: Apache-2.0
// Python 3.12 source to AST, with the language's SyntaxErrors as CPython 3.12's `ast.parse` raises
// them; those that only its compiler finds ('return' outside function) are not this module's.
// Never recurses or allocates without bound: nesting and size end in a SyntaxError of their own.
// Knows the language, no policy. Thread-safe: calls share nothing.
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

// No path from the module down to a leaf has more nodes than this (CPython 3.12's own `ast.parse`
// gives up at 2,993 levels, whatever they consist of). A recursive walker may rely on it: with up
// to 2 KiB of stack a level it stays within an 8 MiB stack.
inline constexpr int kMaxTreeDepth = 3000;

struct ParseOptions {
  // true: `source` is text, as when CPython is given a str: a coding cookie is ignored and a
  // leading U+FEFF is an error. false: `source` is the bytes of a file: BOM and cookie are honoured
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
