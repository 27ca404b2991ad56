// SPDX-License-Identifier: Apache-2.0
#include "python/parser.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/diagnose.h"
#include "python/lexer.h"
#include "python/parser_core.h"
#include "python/source_text.h"
#include "python/walk.h"

namespace caisson::python {
namespace {

// The first node found that is more than kMaxTreeDepth levels down. Does not recurse.
std::optional<NodeRef> FindTooDeep(const Module* module) {
  std::vector<std::pair<NodeRef, int>> stack{{NodeRef(module), 0}};
  while (!stack.empty()) {
    const auto [node, depth] = stack.back();
    stack.pop_back();
    if (depth > kMaxTreeDepth && node.span().known()) return node;
    ForEachChild(node,
                 [&stack, below = depth + 1](NodeRef child) { stack.emplace_back(child, below); });
  }
  return std::nullopt;
}

SyntaxError TooDeep(SourceSpan span) {
  return {SyntaxError::Type::kTooDeep,
          "maximum recursion depth exceeded during ast construction: the tree may be at most " +
              std::to_string(kMaxTreeDepth) + " levels deep",
          span};
}

SyntaxError ToError(std::string_view text, const LexResult& lexed, const Parser& parser) {
  if (parser.has_error() && parser.error().type == SyntaxError::Type::kTooDeep) {
    return parser.error();
  }
  const auto statement = static_cast<std::size_t>(parser.statement() - lexed.tokens.data());
  return Diagnose(text, lexed, {statement, &parser.failure()});
}

}  // namespace

std::expected<Tree, SyntaxError> Parse(std::string_view source, const ParseOptions& options) {
  Tree tree;
  tree.arena_ = std::make_unique<Arena>();
  auto text = ReadSource(source, options, tree.source_);
  if (!text) return std::unexpected(std::move(text.error()));
  const std::string_view buffer = tree.arena_->Copy(*text).substr(0, text->size() - 1);
  LexResult lexed = Lex(buffer);
  Parser parser(buffer, lexed.tokens, *tree.arena_);
  tree.module_ = parser.ParseModule();
  if (parser.failed()) return std::unexpected(ToError(buffer, lexed, parser));
  if (lexed.tokens.size() > kMaxTreeDepth) {
    if (const auto node = FindTooDeep(tree.module_)) return std::unexpected(TooDeep(node->span()));
  }
  return tree;
}

}  // namespace caisson::python
