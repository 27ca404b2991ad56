// SPDX-License-Identifier: Apache-2.0
// What the parser and the printer make of many inputs, for compare_with_cpython.py. Reads requests
// from stdin and answers each on stdout:
//
//   MODE KIND LENGTH\n<LENGTH bytes>   ->   STATUS LENGTH\n<LENGTH bytes>
//
// KIND: `file` (the bytes are a path), `bytes` (of a file), `text` (UTF-8), `seed` (decimal; a
// random tree, printed). MODE: `dump` (the tree), `check` (the tree, after it survived printing and
// parsing), `print` (canonical source), `error` (nothing when accepted). STATUS: `ok`, `error` (the
// bytes are type, line:column-line:column and message, one per line) or `differs` (the printed
// source does not parse to the same tree; the bytes say why).
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "python/ast_dump.h"
#include "python/parser.h"
#include "python/printer.h"
#include "random_ast.h"

namespace caisson::python {
namespace {

struct Answer {
  std::string status;
  std::string payload;
};

std::string_view NameOf(SyntaxError::Type type) {
  switch (type) {
    case SyntaxError::Type::kSyntax:
      return "SyntaxError";
    case SyntaxError::Type::kIndentation:
      return "IndentationError";
    case SyntaxError::Type::kTab:
      return "TabError";
    case SyntaxError::Type::kTooDeep:
      return "TooDeep";
    case SyntaxError::Type::kTooLarge:
      return "TooLarge";
  }
  return "?";
}

std::string Describe(const SyntaxError& error) {
  std::string text(NameOf(error.type));
  text += '\n' + std::to_string(error.span.line) + ':' + std::to_string(error.span.column) + '-' +
          std::to_string(error.span.end_line) + ':' + std::to_string(error.span.end_column) + '\n';
  return text + error.message;
}

// Why `module`, printed, is not the same tree any more; empty when it is.
std::string RoundTripFailure(const Module& module) {
  const std::string printed = Print(module);
  const auto again = Parse(printed, {.is_text = true});
  if (!again) return "the printed source is refused: " + Describe(again.error()) + "\n" + printed;
  const std::string before = DumpAst(&module, DumpPositions::kOmit);
  const std::string after = DumpAst(&again->module(), DumpPositions::kOmit);
  if (before != after) return "the trees differ:\n" + before + "---\n" + after + "---\n" + printed;
  if (printed != Print(again->module())) return "printing is not stable:\n" + printed;
  return {};
}

Answer AnswerSource(const std::string& mode, const std::string& source, bool is_text) {
  const auto parsed = Parse(source, {.is_text = is_text});
  if (!parsed) return {"error", Describe(parsed.error())};
  if (mode == "error") return {"ok", ""};
  if (mode == "print") return {"ok", Print(parsed->module())};
  if (mode == "check") {
    std::string failure = RoundTripFailure(parsed->module());
    if (!failure.empty()) return {"differs", std::move(failure)};
  }
  return {"ok", DumpAst(&parsed->module())};
}

Answer AnswerSeed(const std::string& seed) {
  Arena arena;
  return {"ok", Print(RandomAst(arena, std::stoull(seed)).MakeModule())};
}

Answer AnswerRequest(const std::string& mode, const std::string& kind, const std::string& payload) {
  if (kind == "seed") return AnswerSeed(payload);
  if (kind != "file") return AnswerSource(mode, payload, kind == "text");
  std::ifstream file(payload, std::ios::binary);
  if (!file) return {"error", "OSError\n0:0-0:0\ncannot read " + payload};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return AnswerSource(mode, bytes, false);
}

int Serve() {
  std::string mode;
  std::string kind;
  std::size_t length = 0;
  while (std::cin >> mode >> kind >> length) {
    std::cin.get();
    std::string payload(length, '\0');
    std::cin.read(payload.data(), static_cast<std::streamsize>(length));
    if (!std::cin) return 1;
    const Answer answer = AnswerRequest(mode, kind, payload);
    std::cout << answer.status << ' ' << answer.payload.size() << '\n' << answer.payload;
    std::cout.flush();
  }
  return 0;
}

}  // namespace
}  // namespace caisson::python

int main() {
  std::ios::sync_with_stdio(false);
  return caisson::python::Serve();
}
