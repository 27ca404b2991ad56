// SPDX-License-Identifier: Apache-2.0
#include "python/parser_core.h"

#include "python/unicode.h"

namespace caisson::python {

Parser::Parser(std::string_view text, const std::vector<Token>& tokens, Arena& arena)
    : text_(text), t_(tokens.data()), arena_(arena) {
  poison_.fill(tokens.back());
  for (Token& token : poison_) {
    token.kind = TokenKind::kError;
    token.soft = SoftKeyword::kNo;
  }
  nowhere_.kind = ExprKind::kName;
  scratch_.reserve(256);
}

Module* Parser::ParseModule() {
  Module* module = arena_.New<Module>();
  module->body = ParseStatements(TokenKind::kEndMarker);
  return module;
}

void Parser::Fail() {
  if (failed_) return;
  failed_ = true;
  failure_ = t_;
  t_ = &poison_[1];
}

void Parser::FailWith(SyntaxError::Type type, std::string message, SourceSpan span) {
  if (failed_) return;
  error_ = {type, std::move(message), span};
  has_error_ = true;
  Fail();
}

void Parser::FailTooDeep() {
  FailWith(SyntaxError::Type::kTooDeep,
           "Parser stack overflowed - Python source too complex to parse", SpanOf(*t_));
}

void Parser::Rewind(const State& state) {
  t_ = state.token;
  scratch_.resize(state.scratch);
  failed_ = false;
  has_error_ = false;
}

std::string_view Parser::Identifier(const Token& token) {
  const std::string_view text = Text(token);
  if (!token.non_ascii) return text;
  const auto normalized = NormalizeNfkc(text);
  return normalized ? arena_.Copy(*normalized) : text;
}

std::string_view Parser::ExpectName() {
  if (!At(TokenKind::kName)) {
    Fail();
    return {};
  }
  return Identifier(*t_++);
}

SourceSpan Parser::BlockSpanFrom(const Token* first) const {
  const Token* last = t_ - 1;
  while (last > first && (last->kind == TokenKind::kNewline || last->kind == TokenKind::kDedent ||
                          last->kind == TokenKind::kIndent)) {
    --last;
  }
  return Between(*first, *last);
}

Expr* Parser::MakeName(const Token& token, ExprContext ctx) {
  Name* name = Make<Name>(SpanOf(token));
  name->id = Identifier(token);
  name->ctx = ctx;
  return name;
}

Expr* Parser::MakeConstant(const Token& token, ConstantKind kind) {
  Constant* constant = Make<Constant>(SpanOf(token));
  constant->constant = kind;
  return constant;
}

Expr* Parser::Nowhere() {
  Fail();
  return &nowhere_;
}

}  // namespace caisson::python
