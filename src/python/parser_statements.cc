// SPDX-License-Identifier: Apache-2.0
// Blocks and simple statements.
#include "python/parser_core.h"

namespace caisson::python {

using enum TokenKind;

namespace {

bool FindAugmented(TokenKind kind, BinaryOperator& op) {
  switch (kind) {
    case kPlusEqual:
      op = BinaryOperator::kAdd;
      return true;
    case kMinusEqual:
      op = BinaryOperator::kSub;
      return true;
    case kStarEqual:
      op = BinaryOperator::kMult;
      return true;
    case kAtEqual:
      op = BinaryOperator::kMatMult;
      return true;
    case kSlashEqual:
      op = BinaryOperator::kDiv;
      return true;
    case kPercentEqual:
      op = BinaryOperator::kMod;
      return true;
    case kAmperEqual:
      op = BinaryOperator::kBitAnd;
      return true;
    case kVBarEqual:
      op = BinaryOperator::kBitOr;
      return true;
    case kCircumflexEqual:
      op = BinaryOperator::kBitXor;
      return true;
    case kLeftShiftEqual:
      op = BinaryOperator::kLShift;
      return true;
    case kRightShiftEqual:
      op = BinaryOperator::kRShift;
      return true;
    case kDoubleStarEqual:
      op = BinaryOperator::kPow;
      return true;
    case kDoubleSlashEqual:
      op = BinaryOperator::kFloorDiv;
      return true;
    default:
      return false;
  }
}

bool EndsSimple(TokenKind kind) { return kind == kNewline || kind == kSemicolon; }

}  // namespace

// ---- blocks ------------------------------------------------------------------------------------

List<Stmt*> Parser::ParseStatements(TokenKind end) {
  ListBuilder<Stmt> out(*this);
  while (!At(end) && !failed_) {
    if (end == kEndMarker) statement_ = t_;
    if (Stmt* compound = ParseCompound()) {
      out.Add(compound);
    } else {
      ParseSimpleLine(out);
    }
  }
  Take(end);
  return out.Finish();
}

void Parser::ParseSimpleLine(ListBuilder<Stmt>& out) {
  do {
    out.Add(ParseSimple());
  } while (Take(kSemicolon) && !At(kNewline));
  Expect(kNewline);
}

List<Stmt*> Parser::ParseBlock() {
  if (Take(kNewline)) {
    Expect(kIndent);
    return ParseStatements(kDedent);
  }
  ListBuilder<Stmt> out(*this);
  ParseSimpleLine(out);
  return out.Finish();
}

// ---- simple statements -------------------------------------------------------------------------

Stmt* Parser::ParseSimple() {
  switch (t_->kind) {
    case kReturn:
      return ParseReturn();
    case kImport:
      return ParseImport();
    case kFrom:
      return ParseImportFrom();
    case kRaise:
      return ParseRaise();
    case kDel:
      return ParseDelete();
    case kAssert:
      return ParseAssert();
    case kGlobal:
      return ParseScopeNames<Global>();
    case kNonlocal:
      return ParseScopeNames<Nonlocal>();
    case kPass:
      return Make<Pass>(SpanOf(*t_++));
    case kBreak:
      return Make<Break>(SpanOf(*t_++));
    case kContinue:
      return Make<Continue>(SpanOf(*t_++));
    default:
      break;
  }
  if (AtSoft(SoftKeyword::kType) && t_[1].kind == kName) return ParseTypeAlias();
  return ParseExpressionStatement();
}

Expr* Parser::ParseRightSide() { return At(kYield) ? ParseYield() : ParseStarExpressions(); }

Stmt* Parser::ParseExpressionStatement() {
  const Token* first = t_;
  Expr* expr = ParseRightSide();
  BinaryOperator op;
  if (At(kEqual)) return ParseAssignment(first, expr);
  if (At(kColon)) return ParseAnnotated(first, expr);
  if (FindAugmented(t_->kind, op)) return ParseAugmented(first, expr, op);
  ExprStmt* statement = Make<ExprStmt>(SpanFrom(first));
  statement->value = expr;
  return statement;
}

Stmt* Parser::ParseAssignment(const Token* first, Expr* expr) {
  ListBuilder<Expr> targets(*this);
  while (Take(kEqual)) {
    targets.Add(CheckTarget(expr));
    expr = ParseRightSide();
  }
  Assign* assign = Make<Assign>(SpanFrom(first));
  assign->targets = targets.Finish();
  assign->value = expr;
  return assign;
}

Stmt* Parser::ParseAnnotated(const Token* first, Expr* target) {
  if (failed_ || !IsSingleTarget(target)) Fail();
  ++t_;
  SetContext(target, ExprContext::kStore);
  Expr* annotation = ParseExpression();
  Expr* value = Take(kEqual) ? ParseRightSide() : nullptr;
  AnnAssign* assign = Make<AnnAssign>(SpanFrom(first));
  assign->target = target;
  assign->annotation = annotation;
  assign->value = value;
  assign->simple = first->kind == kName && target->kind == ExprKind::kName;
  return assign;
}

Stmt* Parser::ParseAugmented(const Token* first, Expr* target, BinaryOperator op) {
  if (failed_ || !IsSingleTarget(target)) Fail();
  ++t_;
  SetContext(target, ExprContext::kStore);
  Expr* value = ParseRightSide();
  AugAssign* assign = Make<AugAssign>(SpanFrom(first));
  assign->target = target;
  assign->op = op;
  assign->value = value;
  return assign;
}

Stmt* Parser::ParseReturn() {
  const Token* first = t_++;
  Expr* value = EndsSimple(t_->kind) ? nullptr : ParseStarExpressions();
  Return* statement = Make<Return>(SpanFrom(first));
  statement->value = value;
  return statement;
}

Stmt* Parser::ParseRaise() {
  const Token* first = t_++;
  Expr* exc = EndsSimple(t_->kind) ? nullptr : ParseExpression();
  Expr* cause = exc != nullptr && Take(kFrom) ? ParseExpression() : nullptr;
  Raise* statement = Make<Raise>(SpanFrom(first));
  statement->exc = exc;
  statement->cause = cause;
  return statement;
}

Stmt* Parser::ParseDelete() {
  const Token* first = t_++;
  ListBuilder<Expr> targets(*this);
  do {
    Expr* target = ParseBitwiseOr();
    if (failed_ || !IsDeleteTarget(target)) Fail();
    SetContext(target, ExprContext::kDel);
    targets.Add(target);
  } while (Take(kComma) && !EndsSimple(t_->kind));
  Delete* statement = Make<Delete>(SpanFrom(first));
  statement->targets = targets.Finish();
  return statement;
}

Stmt* Parser::ParseAssert() {
  const Token* first = t_++;
  Expr* test = ParseExpression();
  Expr* msg = Take(kComma) ? ParseExpression() : nullptr;
  Assert* statement = Make<Assert>(SpanFrom(first));
  statement->test = test;
  statement->msg = msg;
  return statement;
}

template <typename T>
Stmt* Parser::ParseScopeNames() {
  const Token* first = t_++;
  std::vector<std::string_view> names;
  do {
    names.push_back(ExpectName());
  } while (Take(kComma));
  T* statement = Make<T>(SpanFrom(first));
  statement->names = arena_.Copy<std::string_view>(names);
  return statement;
}

// ---- imports -----------------------------------------------------------------------------------

// Spaces around the dots are allowed, so the name is put together when it is not one word.
std::string_view Parser::ParseDottedName() {
  const std::string_view first = ExpectName();
  if (!At(kDot)) return first;
  std::string name(first);
  while (Take(kDot)) {
    name += '.';
    name += ExpectName();
  }
  return arena_.Copy(name);
}

Alias* Parser::ParseAlias(bool dotted) {
  const Token* first = t_;
  Alias* alias = arena_.New<Alias>();
  alias->name = dotted ? ParseDottedName() : ExpectName();
  if (Take(kAs)) alias->asname = ExpectName();
  alias->span = SpanFrom(first);
  return alias;
}

Stmt* Parser::ParseImport() {
  const Token* first = t_++;
  ListBuilder<Alias> names(*this);
  do {
    names.Add(ParseAlias(true));
  } while (Take(kComma));
  Import* statement = Make<Import>(SpanFrom(first));
  statement->names = names.Finish();
  return statement;
}

Stmt* Parser::ParseImportFrom() {
  const Token* first = t_++;
  int level = 0;
  for (;; ++t_) {
    if (At(kDot)) {
      ++level;
    } else if (At(kEllipsis)) {
      level += 3;
    } else {
      break;
    }
  }
  const std::string_view module = level > 0 && At(kImport) ? std::string_view() : ParseDottedName();
  Expect(kImport);
  List<Alias*> names = ParseImportedNames();
  ImportFrom* statement = Make<ImportFrom>(SpanFrom(first));
  statement->module = module;
  statement->names = names;
  statement->level = level;
  return statement;
}

List<Alias*> Parser::ParseImportedNames() {
  ListBuilder<Alias> names(*this);
  if (At(kStar)) {
    Alias* alias = arena_.New<Alias>();
    alias->name = Text(*t_);
    alias->span = SpanOf(*t_++);
    names.Add(alias);
    return names.Finish();
  }
  const bool parenthesized = Take(kLParen);
  do {
    if (parenthesized && At(kRParen) && names.size() > 0) break;
    names.Add(ParseAlias(false));
  } while (Take(kComma));
  if (parenthesized) Expect(kRParen);
  return names.Finish();
}

// ---- type aliases and type parameters ----------------------------------------------------------

Stmt* Parser::ParseTypeAlias() {
  const Token* first = t_++;
  Expr* name = MakeName(*t_++, ExprContext::kStore);
  List<TypeParam*> params = ParseTypeParams();
  Expect(kEqual);
  Expr* value = ParseExpression();
  TypeAlias* statement = Make<TypeAlias>(SpanFrom(first));
  statement->name = name;
  statement->type_params = params;
  statement->value = value;
  return statement;
}

List<TypeParam*> Parser::ParseTypeParams() {
  if (!Take(kLBracket)) return {};
  ListBuilder<TypeParam> params(*this);
  do {
    if (At(kRBracket) && params.size() > 0) break;
    const Token* first = t_;
    TypeParam* param = arena_.New<TypeParam>();
    if (Take(kStar))
      param->kind = TypeParamKind::kTypeVarTuple;
    else if (Take(kDoubleStar))
      param->kind = TypeParamKind::kParamSpec;
    param->name = ExpectName();
    if (param->kind == TypeParamKind::kTypeVar && Take(kColon)) param->bound = ParseExpression();
    param->span = SpanFrom(first);
    params.Add(param);
  } while (Take(kComma));
  Expect(kRBracket);
  return params.Finish();
}

}  // namespace caisson::python
