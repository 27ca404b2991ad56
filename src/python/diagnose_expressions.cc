// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

#include <utility>

#include <fmt/format.h>

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

namespace {

// CPython's test for a soft keyword is also true of every beginning of one.
bool BeginsSoftKeyword(std::string_view word) {
  for (const std::string_view keyword : {"_", "case", "match", "type"}) {
    if (keyword.starts_with(word)) return true;
  }
  return false;
}

}  // namespace

// ---- expressions and stars ---------------------------------------------------------------------

D::Node* D::Expressions() {
  const std::size_t start = pos_;
  std::vector<Node*> items = Separated(&D::Expression);
  if (items.empty()) return nullptr;
  const bool comma = Tok(kComma);
  if (items.size() == 1 && !comma) return items[0];
  return MakeWith(ExprKind::kTuple, start, std::move(items));
}

D::Node* D::Expression() { return Remember(Memo::kExpression, &D::ExpressionBody); }

D::Node* D::ExpressionBody() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidExpression();
    pos_ = start;
    InvalidLegacyExpression();
    pos_ = start;
  }
  return PlainExpression();
}

D::Node* D::Ternary() {
  const std::size_t start = pos_;
  Node* body = Disjunction();
  if (body != nullptr && Tok(kIf) && Disjunction() && Tok(kElse) && Expression()) {
    return Make(ExprKind::kIfExp, start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidExpression() {
  const std::size_t start = pos_;
  // Not for a name before a string (a bad prefix) and not for soft keywords.
  bool excluded = Tok(kName) && Tok(kString);
  pos_ = start;
  excluded = excluded || (Peek(kName) && BeginsSoftKeyword(TextOf(tokens_[pos_])));
  if (!excluded) {
    Node* a = Disjunction();
    Node* b = a != nullptr ? ExpressionWithoutInvalid() : nullptr;
    if (b != nullptr && !IsLegacyStatement(a) && levels_[pos_ - 1] != 0) {
      return RaiseAt(Range(a->span, b->span), "invalid syntax. Perhaps you forgot a comma?");
    }
  }
  pos_ = start;
  if (Node* a = Disjunction(); a != nullptr && Tok(kIf)) {
    Node* b = Disjunction();
    if (b != nullptr && !PeekAny({kElse, kColon})) {
      return RaiseAt(Range(a->span, b->span), "expected 'else' after 'if' expression");
    }
  }
  pos_ = start;
  if (!Tok(kLambda)) return nullptr;
  Maybe(&D::LambdaParameters);
  if (!Tok(kColon)) return nullptr;
  const SourceSpan span = Range(SpanOf(tokens_[start]), SpanOf(Last()));
  if (!Peek(kFStringMiddle)) return nullptr;
  return RaiseAt(span, "f-string: lambda expressions are not allowed without parentheses");
}

D::Node* D::InvalidLegacyExpression() {
  Node* a = NameToken();
  if (a == nullptr || Peek(kLParen)) return nullptr;
  Node* b = StarExpressions();
  if (b == nullptr || !IsLegacyStatement(a)) return nullptr;
  return RaiseAt(
      Range(a->span, b->span),
      fmt::format("Missing parentheses in call to '{0}'. Did you mean {0}(...)?", a->id));
}

D::Node* D::ExpressionWithoutInvalid() {
  const bool was_explaining = std::exchange(explaining_, false);
  Node* node = PlainExpression();
  explaining_ = was_explaining;
  return node;
}

D::Node* D::PlainExpression() { return First({&D::Ternary, &D::Disjunction, &D::Lambda}); }

D::Node* D::Yield() {
  const std::size_t start = pos_;
  if (!Tok(kYield)) return nullptr;
  const std::size_t after = pos_;
  if (Tok(kFrom) && Expression()) return Make(ExprKind::kYieldFrom, start);
  pos_ = after;
  Maybe(&D::StarExpressions);
  if (raised_) return nullptr;
  return Make(ExprKind::kYield, start);
}

D::Node* D::YieldOrStarExpressions() { return First({&D::Yield, &D::StarExpressions}); }

D::Node* D::StarExpressions() {
  const std::size_t start = pos_;
  std::vector<Node*> items = Separated(&D::StarExpression);
  if (items.empty()) return nullptr;
  const bool comma = Tok(kComma);
  if (items.size() == 1 && !comma) return items[0];
  return MakeWith(ExprKind::kTuple, start, std::move(items));
}

D::Node* D::StarExpression() { return Remember(Memo::kStarExpression, &D::StarExpressionBody); }
D::Node* D::StarExpressionBody() { return First({&D::StarBitwiseOr, &D::Expression}); }

D::Node* D::StarNamedExpressions() {
  const std::size_t start = pos_;
  std::vector<Node*> items = Separated(&D::StarNamedExpression);
  if (items.empty()) return nullptr;
  Tok(kComma);
  return MakeWith(ExprKind::kTuple, start, std::move(items));
}

D::Node* D::StarNamedExpression() { return First({&D::StarBitwiseOr, &D::NamedExpression}); }

D::Node* D::StarBitwiseOr() {
  const std::size_t start = pos_;
  Node* value = Tok(kStar) ? BitwiseOr() : nullptr;
  if (value != nullptr) return MakeWith(ExprKind::kStarred, start, {value});
  pos_ = start;
  return nullptr;
}

D::Node* D::StarredExpression() {
  const std::size_t start = pos_;
  if (explaining_ && Tok(kStar) && Expression() && Tok(kEqual)) {
    if (Node* b = Expression()) {
      return RaiseAt(Range(SpanOf(tokens_[start]), b->span),
                     "cannot assign to iterable argument unpacking");
    }
  }
  pos_ = start;
  Node* value = Tok(kStar) ? Expression() : nullptr;
  if (value != nullptr) return MakeWith(ExprKind::kStarred, start, {value});
  pos_ = start;
  return nullptr;
}

D::Node* D::AssignmentExpression() {
  const std::size_t start = pos_;
  if (NameToken() && Tok(kColonEqual) && Expression()) return Make(ExprKind::kNamedExpr, start);
  pos_ = start;
  return nullptr;
}

D::Node* D::NamedExpression() {
  const std::size_t start = pos_;
  // After "NAME :=" nothing else is tried.
  if (Tok(kName) && Tok(kColonEqual)) {
    pos_ = start;
    return AssignmentExpression();
  }
  pos_ = start;
  if (explaining_) {
    InvalidNamedExpression();
    pos_ = start;
  }
  Node* node = Expression();
  if (node != nullptr && !Peek(kColonEqual)) return raised_ ? nullptr : node;
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidNamedExpression() {
  return Remember(Memo::kInvalidNamedExpression, &D::InvalidNamedExpressionBody);
}

D::Node* D::InvalidNamedExpressionBody() {
  const std::size_t start = pos_;
  if (Node* a = Expression(); a != nullptr && Tok(kColonEqual) && Expression()) {
    return RaiseAt(a->span, fmt::format("cannot use assignment expressions with {}", NameOf(a)));
  }
  pos_ = start;
  if (Node* a = NameToken(); a != nullptr && Tok(kEqual)) {
    Node* b = BitwiseOr();
    if (b != nullptr && !PeekAny({kEqual, kColonEqual})) {
      return RaiseAt(Range(a->span, b->span),
                     "invalid syntax. Maybe you meant '==' or ':=' instead of '='?");
    }
  }
  pos_ = start;
  if (Ahead(&D::ListDisplay) || Ahead(&D::Tuple) || Ahead(&D::Generator) ||
      PeekAny({kTrue, kNone, kFalse})) {
    return nullptr;
  }
  Node* a = BitwiseOr();
  if (a == nullptr || !Tok(kEqual) || !BitwiseOr() || PeekAny({kEqual, kColonEqual})) {
    return nullptr;
  }
  return RaiseAt(a->span, fmt::format("cannot assign to {} here. Maybe you meant '==' instead of "
                                      "'='?",
                                      NameOf(a)));
}

// ---- operators ---------------------------------------------------------------------------------

D::Node* D::Disjunction() { return Remember(Memo::kDisjunction, &D::DisjunctionBody); }

D::Node* D::DisjunctionBody() {
  const std::size_t start = pos_;
  Node* first = Conjunction();
  if (first == nullptr) return nullptr;
  bool more = false;
  for (std::size_t at = pos_;; at = pos_, more = true) {
    if (Tok(kOr) && Conjunction()) continue;
    pos_ = at;
    return more ? Make(ExprKind::kBoolOp, start) : first;
  }
}

D::Node* D::Conjunction() { return Remember(Memo::kConjunction, &D::ConjunctionBody); }

D::Node* D::ConjunctionBody() {
  const std::size_t start = pos_;
  Node* first = Inversion();
  if (first == nullptr) return nullptr;
  bool more = false;
  for (std::size_t at = pos_;; at = pos_, more = true) {
    if (Tok(kAnd) && Inversion()) continue;
    pos_ = at;
    return more ? Make(ExprKind::kBoolOp, start) : first;
  }
}

D::Node* D::Inversion() { return Remember(Memo::kInversion, &D::InversionBody); }

D::Node* D::InversionBody() {
  const std::size_t start = pos_;
  if (Tok(kNot) && Inversion()) return Make(ExprKind::kUnaryOp, start);
  pos_ = start;
  return Comparison();
}

bool D::ComparisonOperator(CompareOperator& op) {
  const std::size_t start = pos_;
  op = CompareOperator::kEq;
  if (TokAny({kEqEqual, kNotEqual, kLessEqual, kLess, kGreaterEqual, kGreater})) return true;
  if (Tok(kNot)) {
    op = CompareOperator::kNotIn;
    if (Tok(kIn)) return true;
    pos_ = start;
    return false;
  }
  if (Tok(kIn)) {
    op = CompareOperator::kIn;
    return true;
  }
  op = CompareOperator::kIs;
  if (!Tok(kIs)) return false;
  Tok(kNot);
  return true;
}

D::Node* D::Comparison() {
  const std::size_t start = pos_;
  Node* left = BitwiseOr();
  if (left == nullptr) return nullptr;
  CompareOperator first_op = CompareOperator::kEq;
  bool more = false;
  for (;;) {
    const std::size_t at = pos_;
    CompareOperator op;
    if (!ComparisonOperator(op) || !BitwiseOr()) {
      pos_ = at;
      break;
    }
    if (!more) first_op = op;
    more = true;
  }
  if (!more) return left;
  Node* node = MakeWith(ExprKind::kCompare, start, {left});
  node->op = first_op;
  return node;
}

D::Node* D::LeftAssociative(Rule operand, std::initializer_list<TokenKind> operators) {
  const std::size_t start = pos_;
  Node* left = (this->*operand)();
  if (left == nullptr) return nullptr;
  for (;;) {
    const std::size_t at = pos_;
    if (!TokAny(operators) || (this->*operand)() == nullptr) {
      pos_ = at;
      return left;
    }
    left = Make(ExprKind::kBinOp, start);
  }
}

D::Node* D::BitwiseOr() { return Remember(Memo::kBitwiseOr, &D::BitwiseOrBody); }
D::Node* D::BitwiseOrBody() { return LeftAssociative(&D::BitwiseXor, {kVBar}); }
D::Node* D::BitwiseXor() { return Remember(Memo::kBitwiseXor, &D::BitwiseXorBody); }
D::Node* D::BitwiseXorBody() { return LeftAssociative(&D::BitwiseAnd, {kCircumflex}); }
D::Node* D::BitwiseAnd() { return Remember(Memo::kBitwiseAnd, &D::BitwiseAndBody); }
D::Node* D::BitwiseAndBody() { return LeftAssociative(&D::Shift, {kAmper}); }
D::Node* D::Shift() { return Remember(Memo::kShift, &D::ShiftBody); }
D::Node* D::ShiftBody() { return LeftAssociative(&D::Sum, {kLeftShift, kRightShift}); }
D::Node* D::Sum() { return Remember(Memo::kSum, &D::SumBody); }
D::Node* D::SumBody() { return LeftAssociative(&D::Term, {kPlus, kMinus}); }
D::Node* D::Term() { return Remember(Memo::kTerm, &D::TermBody); }
D::Node* D::TermBody() {
  return LeftAssociative(&D::Factor, {kStar, kSlash, kDoubleSlash, kPercent, kAt});
}

D::Node* D::Factor() { return Remember(Memo::kFactor, &D::FactorBody); }

D::Node* D::FactorBody() {
  const std::size_t start = pos_;
  if (TokAny({kPlus, kMinus, kTilde}) && Factor()) return Make(ExprKind::kUnaryOp, start);
  pos_ = start;
  return Power();
}

D::Node* D::Power() {
  const std::size_t start = pos_;
  Node* base = AwaitPrimary();
  if (base == nullptr) return nullptr;
  const std::size_t after = pos_;
  if (Tok(kDoubleStar) && Factor()) return Make(ExprKind::kBinOp, start);
  pos_ = after;
  return base;
}

D::Node* D::AwaitPrimary() { return Remember(Memo::kAwaitPrimary, &D::AwaitPrimaryBody); }

D::Node* D::AwaitPrimaryBody() {
  const std::size_t start = pos_;
  if (Tok(kAwait) && Primary()) return Make(ExprKind::kAwait, start);
  pos_ = start;
  return Primary();
}

D::Node* D::Lambda() {
  const std::size_t start = pos_;
  if (!Tok(kLambda)) return nullptr;
  Maybe(&D::LambdaParameters);
  if (Tok(kColon) && Expression()) return Make(ExprKind::kLambda, start);
  pos_ = start;
  return nullptr;
}

}  // namespace caisson::python
