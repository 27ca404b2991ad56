// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

#include <fmt/format.h>

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

// ---- blocks ------------------------------------------------------------------------------------

D::Node* D::Block() { return Remember(Memo::kBlock, &D::BlockBody); }

D::Node* D::BlockBody() {
  const std::size_t start = pos_;
  if (Tok(kNewline) && Tok(kIndent) && Statements() && Tok(kDedent)) return Matched(start);
  pos_ = start;
  if (Node* node = SimpleStatements()) return node;
  pos_ = start;
  if (explaining_ && Tok(kNewline) && !Peek(kIndent)) {
    RaiseHere("expected an indented block", SyntaxError::Type::kIndentation);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::MissingBlock(const Opening& opening) {
  if (!Tok(kColon) || !Tok(kNewline) || Peek(kIndent)) return nullptr;
  return RaiseHere(fmt::format("expected an indented block after {} on line {}", opening.name,
                               opening.keyword->line),
                   SyntaxError::Type::kIndentation);
}

// ---- definitions -------------------------------------------------------------------------------

D::Node* D::Decorators() {
  const std::size_t start = pos_;
  while (!raised_) {
    const std::size_t at = pos_;
    if (Tok(kAt) && NamedExpression() && Tok(kNewline)) continue;
    pos_ = at;
    break;
  }
  return pos_ > start ? Matched(start) : nullptr;
}

D::Node* D::FunctionDefinition() {
  const std::size_t start = pos_;
  if (Decorators() && FunctionRaw()) return Matched(start);
  pos_ = start;
  return FunctionRaw();
}

D::Node* D::ReturnAnnotation() {
  const std::size_t start = pos_;
  if (Tok(kArrow) && Expression()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::FunctionRaw() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidFunction();
    pos_ = start;
  }
  if (Tok(kDef) && FunctionRest()) return Matched(start);
  pos_ = start;
  if (Tok(kAsync) && Tok(kDef) && FunctionRest()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::FunctionRest() {
  const std::size_t start = pos_;
  if (!Tok(kName)) return nullptr;
  Maybe(&D::TypeParams);
  if (!Forced(kLParen, "(")) return nullptr;
  Maybe(&D::FunctionParameters);
  if (!Tok(kRParen)) return nullptr;
  Maybe(&D::ReturnAnnotation);
  if (!Forced(kColon, ":") || !Block()) return nullptr;
  return Matched(start);
}

D::Node* D::InvalidFunction() {
  Tok(kAsync);
  if (!Tok(kDef)) return nullptr;
  const Opening opening{&Last(), "function definition"};
  if (!Tok(kName)) return nullptr;
  Maybe(&D::TypeParams);
  if (!Tok(kLParen)) return nullptr;
  Maybe(&D::FunctionParameters);
  if (!Tok(kRParen)) return nullptr;
  Maybe(&D::ReturnAnnotation);
  return MissingBlock(opening);
}

D::Node* D::ClassDefinition() {
  const std::size_t start = pos_;
  if (Decorators() && ClassRaw()) return Matched(start);
  pos_ = start;
  return ClassRaw();
}

D::Node* D::ClassHead() {
  const std::size_t start = pos_;
  if (!Tok(kClass) || !Tok(kName)) return nullptr;
  Maybe(&D::TypeParams);
  const std::size_t at = pos_;
  if (Tok(kLParen)) {
    Maybe(&D::Arguments);
    if (!Tok(kRParen)) pos_ = at;
  }
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::ClassRaw() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidClass();
    pos_ = start;
  }
  if (ClassHead() && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidClass() {
  const std::size_t start = pos_;
  if (ClassHead() && Tok(kNewline)) return RaiseHere("expected ':'");
  pos_ = start;
  return ClassHead() ? MissingBlock({&tokens_[start], "class definition"}) : nullptr;
}

// ---- if, while, for ----------------------------------------------------------------------------

D::Node* D::InvalidConditional(TokenKind keyword, const char* name) {
  const std::size_t start = pos_;
  if (Tok(keyword) && NamedExpression() && Tok(kNewline)) return RaiseHere("expected ':'");
  pos_ = start;
  if (!Tok(keyword) || !NamedExpression()) return nullptr;
  return MissingBlock({&tokens_[start], name});
}

D::Node* D::Conditional(TokenKind keyword, const char* name) {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidConditional(keyword, name);
    pos_ = start;
  }
  if (Tok(keyword) && NamedExpression() && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::If() {
  Node* node = Conditional(kIf, "'if' statement");
  if (node == nullptr) return nullptr;
  // A chain is read in a loop, for it may be long.
  while (Elif() != nullptr) {
  }
  Maybe(&D::Else);
  return raised_ ? nullptr : node;
}

D::Node* D::Elif() { return Conditional(kElif, "'elif' statement"); }

D::Node* D::While() {
  Node* node = Conditional(kWhile, "'while' statement");
  if (node != nullptr) Maybe(&D::Else);
  return raised_ ? nullptr : node;
}

D::Node* D::Else() {
  const std::size_t start = pos_;
  if (explaining_) {
    if (Tok(kElse)) MissingBlock({&tokens_[start], "'else' statement"});
    pos_ = start;
  }
  if (Tok(kElse) && Forced(kColon, ":") && Block()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::For() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidFor();
    pos_ = start;
  }
  bool committed = false;
  Tok(kAsync);
  if (Tok(kFor) && StarTargets() && Tok(kIn)) {
    committed = true;
    if (ForRest()) return Matched(start);
  }
  pos_ = start;
  if (!committed && explaining_) InvalidForTarget();
  pos_ = start;
  return nullptr;
}

D::Node* D::ForRest() {
  const std::size_t start = pos_;
  if (!StarExpressions() || !Tok(kColon) || !Block()) return nullptr;
  Maybe(&D::Else);
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::InvalidFor() {
  const std::size_t start = pos_;
  for (const bool missing_colon : {true, false}) {
    pos_ = start;
    Tok(kAsync);
    if (!Tok(kFor)) return nullptr;
    const Opening opening{&Last(), "'for' statement"};
    if (!StarTargets() || !Tok(kIn) || !StarExpressions()) return nullptr;
    if (!missing_colon) return MissingBlock(opening);
    if (Tok(kNewline)) return RaiseHere("expected ':'");
  }
  return nullptr;
}

D::Node* D::InvalidForTarget() {
  Tok(kAsync);
  if (!Tok(kFor)) return nullptr;
  Node* a = StarExpressions();
  return a != nullptr ? RaiseInvalidTarget(TargetKind::kFor, a) : nullptr;
}

// ---- with --------------------------------------------------------------------------------------

D::Node* D::With() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidWithIndent();
    pos_ = start;
  }
  Tok(kAsync);
  if (Tok(kWith) && WithRest()) return Matched(start);
  pos_ = start;
  if (explaining_) InvalidWith();
  pos_ = start;
  return nullptr;
}

D::Node* D::WithRest() {
  const std::size_t start = pos_;
  if (Tok(kLParen) && !Separated(&D::WithItem).empty()) {
    Tok(kComma);
    if (Tok(kRParen) && Tok(kColon) && Block()) return Matched(start);
  }
  pos_ = start;
  if (!Separated(&D::WithItem).empty() && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::WithItem() {
  const std::size_t start = pos_;
  if (Expression() && Tok(kAs) && StarTarget() && PeekAny({kComma, kRParen, kColon})) {
    return Matched(start);
  }
  pos_ = start;
  if (explaining_) {
    InvalidWithItem();
    pos_ = start;
  }
  return Expression();
}

D::Node* D::InvalidWithItem() {
  if (!Expression() || !Tok(kAs)) return nullptr;
  Node* a = Expression();
  if (a == nullptr || !PeekAny({kComma, kRParen, kColon})) return nullptr;
  return RaiseInvalidTarget(TargetKind::kStar, a);
}

D::Node* D::ExpressionAsTarget() {
  Node* node = Expression();
  if (node == nullptr) return nullptr;
  const std::size_t at = pos_;
  if (!Tok(kAs) || !StarTarget()) pos_ = at;
  return raised_ ? nullptr : node;
}

D::Node* D::ExpressionsAsTarget() {
  Node* node = Expressions();
  if (node == nullptr) return nullptr;
  const std::size_t at = pos_;
  if (!Tok(kAs) || !StarTarget()) pos_ = at;
  return raised_ ? nullptr : node;
}

// From "with" through the items, whose targets are not looked at closely.
bool D::WithItemsLoose(bool parenthesized) {
  Tok(kAsync);
  if (!Tok(kWith)) return false;
  if (!parenthesized) return !Separated(&D::ExpressionAsTarget).empty();
  if (!Tok(kLParen) || Separated(&D::ExpressionsAsTarget).empty()) return false;
  Tok(kComma);
  return Tok(kRParen);
}

D::Node* D::InvalidWith() {
  const std::size_t start = pos_;
  for (const bool parenthesized : {false, true}) {
    pos_ = start;
    if (WithItemsLoose(parenthesized) && Tok(kNewline)) return RaiseHere("expected ':'");
  }
  return nullptr;
}

D::Node* D::InvalidWithIndent() {
  const std::size_t start = pos_;
  const Token* keyword = &tokens_[tokens_[start].kind == kAsync ? start + 1 : start];
  for (const bool parenthesized : {false, true}) {
    pos_ = start;
    if (WithItemsLoose(parenthesized)) MissingBlock({keyword, "'with' statement"});
    if (raised_) return nullptr;
  }
  return nullptr;
}

// ---- try ---------------------------------------------------------------------------------------

D::Node* D::Try() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidTry();
    pos_ = start;
  }
  if (!Tok(kTry) || !Forced(kColon, ":") || !Block()) {
    pos_ = start;
    return nullptr;
  }
  const std::size_t after = pos_;
  if (Finally()) return Matched(start);
  for (const Rule handler : {&D::Except, &D::ExceptStar}) {
    pos_ = after;
    if (!Many(handler, 1)) continue;
    Maybe(&D::Else);
    Maybe(&D::Finally);
    return raised_ ? nullptr : Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidTry() {
  constexpr const char* kBoth = "cannot have both 'except' and 'except*' on the same 'try'";
  const std::size_t start = pos_;
  if (!Tok(kTry)) return nullptr;
  const std::size_t after = pos_;
  MissingBlock({&tokens_[start], "'try' statement"});
  pos_ = after;
  if (Tok(kColon) && Block() && !PeekAny({kExcept, kFinally})) {
    return RaiseHere("expected 'except' or 'finally' block");
  }
  pos_ = after;
  if (!Tok(kColon)) return nullptr;
  Many(&D::Block, 0);
  const std::size_t handlers = pos_;
  if (Many(&D::Except, 1) && Tok(kExcept)) {
    const SourceSpan except = SpanOf(Last());
    if (Tok(kStar)) {
      const SourceSpan star = SpanOf(Last());
      if (Expression()) {
        Maybe(&D::AsName);
        if (Tok(kColon)) return RaiseAt(Range(except, star), kBoth);
      }
    }
  }
  pos_ = handlers;
  if (!Many(&D::ExceptStar, 1) || !Tok(kExcept)) return nullptr;
  const Token& except = Last();
  if (Expression()) Maybe(&D::AsName);
  return Tok(kColon) ? RaiseAtToken(except, kBoth) : nullptr;
}

D::Node* D::AsName() {
  const std::size_t start = pos_;
  if (Tok(kAs) && Tok(kName)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ExceptType() {
  Node* node = Expression();
  if (node != nullptr) Maybe(&D::AsName);
  return raised_ ? nullptr : node;
}

D::Node* D::Except() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidExceptIndent(false);
    pos_ = start;
  }
  if (Tok(kExcept) && ExceptType() && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  if (Tok(kExcept) && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  if (explaining_) InvalidExcept();
  pos_ = start;
  return nullptr;
}

D::Node* D::ExceptStar() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidExceptIndent(true);
    pos_ = start;
  }
  if (Tok(kExcept) && Tok(kStar) && ExceptType() && Tok(kColon) && Block()) return Matched(start);
  pos_ = start;
  if (explaining_) InvalidExcept();
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidExceptIndent(bool star) {
  const std::size_t start = pos_;
  if (!Tok(kExcept)) return nullptr;
  const Opening opening{&tokens_[start], star ? "'except*' statement" : "'except' statement"};
  if ((!star || Tok(kStar)) && ExceptType()) MissingBlock(opening);
  if (star || raised_) return nullptr;
  pos_ = start + 1;
  return MissingBlock(opening);
}

D::Node* D::InvalidExcept() {
  const std::size_t start = pos_;
  if (!Tok(kExcept)) return nullptr;
  Tok(kStar);
  if (Node* a = Expression(); a != nullptr && Tok(kComma) && Expressions()) {
    Maybe(&D::AsName);
    if (Tok(kColon)) {
      return RaiseAt(UpToReached(a->span), "multiple exception types must be parenthesized");
    }
  }
  pos_ = start + 1;
  Tok(kStar);
  if (ExceptType() && Tok(kNewline)) return RaiseHere("expected ':'");
  pos_ = start + 1;
  if (Tok(kNewline)) return RaiseHere("expected ':'");
  if (Tok(kStar) && TokAny({kNewline, kColon})) {
    return RaiseHere("expected one or more exception types");
  }
  return nullptr;
}

D::Node* D::Finally() {
  const std::size_t start = pos_;
  if (explaining_) {
    if (Tok(kFinally)) MissingBlock({&tokens_[start], "'finally' statement"});
    pos_ = start;
  }
  if (Tok(kFinally) && Forced(kColon, ":") && Block()) return Matched(start);
  pos_ = start;
  return nullptr;
}

// ---- match -------------------------------------------------------------------------------------

D::Node* D::Subject() {
  const std::size_t start = pos_;
  if (StarNamedExpression() && Tok(kComma)) {
    Maybe(&D::StarNamedExpressions);
    if (!raised_) return Matched(start);
  }
  pos_ = start;
  return NamedExpression();
}

D::Node* D::Match() {
  const std::size_t start = pos_;
  if (Soft(SoftKeyword::kMatch) && Subject() && Tok(kColon) && Tok(kNewline) && Tok(kIndent) &&
      Many(&D::Case, 1) && Tok(kDedent)) {
    return Matched(start);
  }
  pos_ = start;
  if (explaining_) InvalidMatch();
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidMatch() {
  const std::size_t start = pos_;
  if (Soft(SoftKeyword::kMatch) && Subject() && Tok(kNewline)) return RaiseHere("expected ':'");
  pos_ = start;
  if (!Soft(SoftKeyword::kMatch) || !Subject()) return nullptr;
  return MissingBlock({&tokens_[start], "'match' statement"});
}

D::Node* D::Guard() {
  const std::size_t start = pos_;
  if (Tok(kIf) && NamedExpression()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::Case() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidCase();
    pos_ = start;
  }
  if (Soft(SoftKeyword::kCase) && Patterns()) {
    Maybe(&D::Guard);
    if (Tok(kColon) && Block()) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidCase() {
  const std::size_t start = pos_;
  if (!Soft(SoftKeyword::kCase) || !Patterns()) return nullptr;
  Maybe(&D::Guard);
  const std::size_t after = pos_;
  if (Tok(kNewline)) return RaiseHere("expected ':'");
  pos_ = after;
  return MissingBlock({&tokens_[start], "'case' statement"});
}

}  // namespace caisson::python
