// SPDX-License-Identifier: Apache-2.0
// Expressions from star_expressions down to unary operators, and assignment targets.
#include "python/parser_core.h"

namespace caisson::python {
namespace {

using enum TokenKind;

struct BinaryInfo {
  int precedence;  // 0: no binary operator
  BinaryOperator op;
};

BinaryInfo FindBinary(TokenKind kind) {
  switch (kind) {
    case kVBar:
      return {1, BinaryOperator::kBitOr};
    case kCircumflex:
      return {2, BinaryOperator::kBitXor};
    case kAmper:
      return {3, BinaryOperator::kBitAnd};
    case kLeftShift:
      return {4, BinaryOperator::kLShift};
    case kRightShift:
      return {4, BinaryOperator::kRShift};
    case kPlus:
      return {5, BinaryOperator::kAdd};
    case kMinus:
      return {5, BinaryOperator::kSub};
    case kStar:
      return {6, BinaryOperator::kMult};
    case kSlash:
      return {6, BinaryOperator::kDiv};
    case kDoubleSlash:
      return {6, BinaryOperator::kFloorDiv};
    case kPercent:
      return {6, BinaryOperator::kMod};
    case kAt:
      return {6, BinaryOperator::kMatMult};
    default:
      return {0, BinaryOperator::kAdd};
  }
}

// What cannot follow a comma that ends a tuple without parentheses.
bool StartsExpression(TokenKind kind) {
  switch (kind) {
    case kName:
    case kNumber:
    case kString:
    case kFStringStart:
    case kLParen:
    case kLBracket:
    case kLBrace:
    case kEllipsis:
    case kTilde:
    case kPlus:
    case kMinus:
    case kStar:
    case kFalse:
    case kNone:
    case kTrue:
    case kAwait:
    case kLambda:
    case kNot:
      return true;
    default:
      return false;
  }
}

}  // namespace

// ---- tuples and stars --------------------------------------------------------------------------

Expr* Parser::MakeTuple(const Token* first, List<Expr*> elts) {
  Tuple* tuple = Make<Tuple>(SpanFrom(first));
  tuple->elts = elts;
  return tuple;
}

Expr* Parser::ParseStarred(Expr* (Parser::*value)()) {
  const Token* first = t_++;
  Expr* inner = (this->*value)();
  Starred* starred = Make<Starred>(SpanFrom(first));
  starred->value = inner;
  return starred;
}

Expr* Parser::ParseStarExpressions() {
  const Token* first = t_;
  Expr* expr = ParseStarExpression();
  if (!At(kComma)) return expr;
  ListBuilder<Expr> elts(*this);
  elts.Add(expr);
  while (Take(kComma) && StartsExpression(t_->kind)) elts.Add(ParseStarExpression());
  return MakeTuple(first, elts.Finish());
}

Expr* Parser::ParseStarExpression() {
  return At(kStar) ? ParseStarred(&Parser::ParseBitwiseOr) : ParseExpression();
}

Expr* Parser::ParseStarNamedExpression() {
  return At(kStar) ? ParseStarred(&Parser::ParseBitwiseOr) : ParseNamedExpression();
}

Expr* Parser::ParseNamedExpression() {
  if (At(kName) && t_[1].kind == kColonEqual) {
    const Token* first = t_;
    Expr* target = MakeName(*t_, ExprContext::kStore);
    t_ += 2;
    Expr* value = ParseExpression();
    NamedExpr* named = Make<NamedExpr>(SpanFrom(first));
    named->target = target;
    named->value = value;
    return named;
  }
  Expr* expr = ParseExpression();
  if (At(kColonEqual)) Fail();
  return expr;
}

Expr* Parser::ParseYield() {
  const Token* first = t_++;
  if (Take(kFrom)) {
    Expr* value = ParseExpression();
    YieldFrom* yield = Make<YieldFrom>(SpanFrom(first));
    yield->value = value;
    return yield;
  }
  Expr* value = StartsExpression(t_->kind) ? ParseStarExpressions() : nullptr;
  Yield* yield = Make<Yield>(SpanFrom(first));
  yield->value = value;
  return yield;
}

// ---- operators, loosest first ------------------------------------------------------------------

Expr* Parser::ParseExpression() {
  const DepthScope scope(*this);
  if (At(kLambda)) return ParseLambda();
  const Token* first = t_;
  Expr* body = ParseDisjunction();
  if (!Take(kIf)) return body;
  Expr* test = ParseDisjunction();
  Expect(kElse);
  Expr* orelse = ParseExpression();
  IfExp* choice = Make<IfExp>(SpanFrom(first));
  choice->test = test;
  choice->body = body;
  choice->orelse = orelse;
  return choice;
}

Expr* Parser::ParseLambda() {
  const Token* first = t_++;
  Arguments* args = ParseParameters(kColon, false);
  Expect(kColon);
  Expr* body = ParseExpression();
  Lambda* lambda = Make<Lambda>(SpanFrom(first));
  lambda->args = args;
  lambda->body = body;
  return lambda;
}

Expr* Parser::ParseDisjunction() {
  const Token* first = t_;
  Expr* expr = ParseConjunction();
  if (!At(kOr)) return expr;
  ListBuilder<Expr> values(*this);
  values.Add(expr);
  while (Take(kOr)) values.Add(ParseConjunction());
  BoolOp* either = Make<BoolOp>(SpanFrom(first));
  either->op = BoolOperator::kOr;
  either->values = values.Finish();
  return either;
}

Expr* Parser::ParseConjunction() {
  const Token* first = t_;
  Expr* expr = ParseInversion();
  if (!At(kAnd)) return expr;
  ListBuilder<Expr> values(*this);
  values.Add(expr);
  while (Take(kAnd)) values.Add(ParseInversion());
  BoolOp* both = Make<BoolOp>(SpanFrom(first));
  both->op = BoolOperator::kAnd;
  both->values = values.Finish();
  return both;
}

Expr* Parser::ParseInversion() {
  if (!At(kNot)) return ParseComparison();
  const DepthScope scope(*this);
  const Token* first = t_;
  if (failed_) return Nowhere();
  ++t_;
  Expr* operand = ParseInversion();
  UnaryOp* inverted = Make<UnaryOp>(SpanFrom(first));
  inverted->op = UnaryOperator::kNot;
  inverted->operand = operand;
  return inverted;
}

bool Parser::TakeComparison(CompareOperator& op) {
  const auto one = [&](CompareOperator found) {
    ++t_;
    op = found;
    return true;
  };
  switch (t_->kind) {
    case kEqEqual:
      return one(CompareOperator::kEq);
    case kNotEqual:
      return one(CompareOperator::kNotEq);
    case kLess:
      return one(CompareOperator::kLt);
    case kLessEqual:
      return one(CompareOperator::kLtE);
    case kGreater:
      return one(CompareOperator::kGt);
    case kGreaterEqual:
      return one(CompareOperator::kGtE);
    case kIn:
      return one(CompareOperator::kIn);
    case kIs:
      one(CompareOperator::kIs);
      if (Take(kNot)) op = CompareOperator::kIsNot;
      return true;
    case kNot:
      if (t_[1].kind != kIn) return false;
      ++t_;
      return one(CompareOperator::kNotIn);
    default:
      return false;
  }
}

Expr* Parser::ParseComparison() {
  const Token* first = t_;
  Expr* left = ParseBitwiseOr();
  CompareOperator op;
  if (!TakeComparison(op)) return left;
  std::vector<CompareOperator> more_ops;
  ListBuilder<Expr> comparators(*this);
  const CompareOperator first_op = op;
  comparators.Add(ParseBitwiseOr());
  while (TakeComparison(op)) {
    more_ops.push_back(op);
    comparators.Add(ParseBitwiseOr());
  }
  Compare* compare = Make<Compare>(SpanFrom(first));
  compare->left = left;
  auto* ops = arena_.NewArray<CompareOperator>(1 + more_ops.size());
  ops[0] = first_op;
  std::copy(more_ops.begin(), more_ops.end(), ops + 1);
  compare->ops = {ops, 1 + more_ops.size()};
  compare->comparators = comparators.Finish();
  return compare;
}

Expr* Parser::ParseBinary(int precedence) {
  const Token* first = t_;
  Expr* left = ParseFactor();
  for (;;) {
    const BinaryInfo info = FindBinary(t_->kind);
    if (info.precedence < precedence || info.precedence == 0) return left;
    ++t_;
    Expr* right = ParseBinary(info.precedence + 1);
    BinOp* node = Make<BinOp>(SpanFrom(first));
    node->left = left;
    node->op = info.op;
    node->right = right;
    left = node;
  }
}

Expr* Parser::ParseFactor() {
  UnaryOperator op;
  switch (t_->kind) {
    case kPlus:
      op = UnaryOperator::kUAdd;
      break;
    case kMinus:
      op = UnaryOperator::kUSub;
      break;
    case kTilde:
      op = UnaryOperator::kInvert;
      break;
    default:
      return ParsePower();
  }
  const DepthScope scope(*this);
  if (failed_) return Nowhere();
  const Token* first = t_++;
  Expr* operand = ParseFactor();
  UnaryOp* node = Make<UnaryOp>(SpanFrom(first));
  node->op = op;
  node->operand = operand;
  return node;
}

Expr* Parser::ParsePower() {
  const Token* first = t_;
  Expr* base = ParseAwaitPrimary();
  if (!At(kDoubleStar)) return base;
  const DepthScope scope(*this);
  if (failed_) return Nowhere();
  ++t_;
  Expr* exponent = ParseFactor();
  BinOp* node = Make<BinOp>(SpanFrom(first));
  node->left = base;
  node->op = BinaryOperator::kPow;
  node->right = exponent;
  return node;
}

// ---- targets -----------------------------------------------------------------------------------

bool Parser::IsSingleTarget(const Expr* expr) {
  return expr->kind == ExprKind::kName || expr->kind == ExprKind::kAttribute ||
         expr->kind == ExprKind::kSubscript;
}

// Recursion is bounded by the brackets that lists and tuples take (a tuple without any is
// outermost).
bool Parser::IsStarTarget(const Expr* expr) {
  if (const auto* starred = IsA<Starred>(expr)) {
    return starred->value->kind != ExprKind::kStarred && IsStarTarget(starred->value);
  }
  List<Expr*> elts;
  if (const auto* tuple = IsA<Tuple>(expr)) {
    elts = tuple->elts;
  } else if (const auto* list = IsA<ListExpr>(expr)) {
    elts = list->elts;
  } else {
    return IsSingleTarget(expr);
  }
  for (const Expr* elt : elts) {
    if (!IsStarTarget(elt)) return false;
  }
  return true;
}

bool Parser::IsDeleteTarget(const Expr* expr) {
  List<Expr*> elts;
  if (const auto* tuple = IsA<Tuple>(expr)) {
    elts = tuple->elts;
  } else if (const auto* list = IsA<ListExpr>(expr)) {
    elts = list->elts;
  } else {
    return IsSingleTarget(expr);
  }
  for (const Expr* elt : elts) {
    if (!IsDeleteTarget(elt)) return false;
  }
  return true;
}

void Parser::SetContext(Expr* expr, ExprContext ctx) {
  switch (expr->kind) {
    case ExprKind::kName:
      static_cast<Name*>(expr)->ctx = ctx;
      return;
    case ExprKind::kAttribute:
      static_cast<Attribute*>(expr)->ctx = ctx;
      return;
    case ExprKind::kSubscript:
      static_cast<Subscript*>(expr)->ctx = ctx;
      return;
    case ExprKind::kStarred:
      static_cast<Starred*>(expr)->ctx = ctx;
      return SetContext(static_cast<Starred*>(expr)->value, ctx);
    case ExprKind::kTuple:
      static_cast<Tuple*>(expr)->ctx = ctx;
      for (Expr* elt : static_cast<Tuple*>(expr)->elts) SetContext(elt, ctx);
      return;
    case ExprKind::kList:
      static_cast<ListExpr*>(expr)->ctx = ctx;
      for (Expr* elt : static_cast<ListExpr*>(expr)->elts) SetContext(elt, ctx);
      return;
    default:
      return;
  }
}

Expr* Parser::ParseTarget() {
  return At(kStar) ? ParseStarred(&Parser::ParseBitwiseOr) : ParseBitwiseOr();
}

Expr* Parser::CheckTarget(Expr* target) {
  if (failed_) return target;
  if (!IsStarTarget(target)) return Nowhere();
  SetContext(target, ExprContext::kStore);
  return target;
}

Expr* Parser::ParseTargets() {
  const Token* first = t_;
  Expr* target = ParseTarget();
  if (At(kComma)) {
    ListBuilder<Expr> elts(*this);
    elts.Add(target);
    while (Take(kComma) && StartsExpression(t_->kind)) elts.Add(ParseTarget());
    target = MakeTuple(first, elts.Finish());
  }
  return CheckTarget(target);
}

}  // namespace caisson::python
