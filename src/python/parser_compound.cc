// SPDX-License-Identifier: Apache-2.0
// Compound statements.
#include "python/parser_core.h"

namespace caisson::python {

using enum TokenKind;

Stmt* Parser::ParseCompound() {
  switch (t_->kind) {
    case kIf:
      return ParseIf();
    case kDef:
      return ParseFunction(t_, StmtKind::kFunctionDef, {});
    case kClass:
      return ParseClass({});
    case kFor:
      return ParseFor(t_, StmtKind::kFor);
    case kWhile:
      return ParseWhile();
    case kTry:
      return ParseTry();
    case kWith:
      return ParseWith(t_, StmtKind::kWith);
    case kAt:
      return ParseDecorated();
    case kAsync:
      return ParseAsync({});
    case kName:
      return t_->soft == SoftKeyword::kMatch ? ParseMatch() : nullptr;
    default:
      return nullptr;
  }
}

// At "async". Only functions take decorators.
Stmt* Parser::ParseAsync(List<Expr*> decorators) {
  const Token* first = t_++;
  if (At(kDef)) return ParseFunction(first, StmtKind::kAsyncFunctionDef, decorators);
  if (decorators.empty() && At(kFor)) return ParseFor(first, StmtKind::kAsyncFor);
  if (decorators.empty() && At(kWith)) return ParseWith(first, StmtKind::kAsyncWith);
  Fail();
  return Make<Pass>(SpanOf(*first));
}

Stmt* Parser::ParseDecorated() {
  ListBuilder<Expr> builder(*this);
  while (Take(kAt)) {
    builder.Add(ParseNamedExpression());
    Expect(kNewline);
  }
  List<Expr*> decorators = builder.Finish();
  if (At(kClass)) return ParseClass(decorators);
  if (At(kAsync)) return ParseAsync(decorators);
  return ParseFunction(t_, StmtKind::kFunctionDef, decorators);
}

// `first` is at "async" or "def"; the cursor at "def".
Stmt* Parser::ParseFunction(const Token* first, StmtKind kind, List<Expr*> decorators) {
  Expect(kDef);
  const std::string_view name = ExpectName();
  List<TypeParam*> type_params = ParseTypeParams();
  Expect(kLParen);
  Arguments* args = ParseParameters(kRParen, true);
  Expect(kRParen);
  Expr* returns = Take(kArrow) ? ParseExpression() : nullptr;
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  FunctionDef* function = Make<FunctionDef>(BlockSpanFrom(first));
  function->kind = kind;
  function->name = name;
  function->args = args;
  function->body = body;
  function->decorator_list = decorators;
  function->returns = returns;
  function->type_params = type_params;
  return function;
}

Stmt* Parser::ParseClass(List<Expr*> decorators) {
  const Token* first = t_++;
  const std::string_view name = ExpectName();
  List<TypeParam*> type_params = ParseTypeParams();
  List<Expr*> bases;
  List<Keyword*> keywords;
  if (Take(kLParen)) {
    ParseArguments(bases, keywords, false);
    Expect(kRParen);
  }
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  ClassDef* definition = Make<ClassDef>(BlockSpanFrom(first));
  definition->name = name;
  definition->bases = bases;
  definition->keywords = keywords;
  definition->body = body;
  definition->decorator_list = decorators;
  definition->type_params = type_params;
  return definition;
}

List<Stmt*> Parser::ParseElse() {
  if (!Take(kElse)) return {};
  Expect(kColon);
  return ParseBlock();
}

// An `elif` is an If in the orelse of the one before; all of a chain end at the same place.
Stmt* Parser::ParseIf() {
  ListBuilder<Stmt> chain(*this);
  const Token* start = t_;
  const Token* first = t_;
  do {
    ++t_;
    If* branch = Make<If>(SpanOf(*first));
    branch->test = ParseNamedExpression();
    Expect(kColon);
    branch->body = ParseBlock();
    chain.Add(branch);
    first = t_;
  } while (At(kElif));
  List<Stmt*> orelse = ParseElse();
  const SourceSpan end = BlockSpanFrom(start);
  for (std::size_t i = chain.size(); i-- > 0;) {
    If* branch = static_cast<If*>(chain[i]);
    branch->span.end_line = end.end_line;
    branch->span.end_column = end.end_column;
    branch->orelse = orelse;
    if (i == 0) return branch;
    Stmt** one = arena_.NewArray<Stmt*>(1);
    one[0] = branch;
    orelse = {one, 1};
  }
  return nullptr;
}

Stmt* Parser::ParseWhile() {
  const Token* first = t_++;
  Expr* test = ParseNamedExpression();
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  List<Stmt*> orelse = ParseElse();
  While* loop = Make<While>(BlockSpanFrom(first));
  loop->test = test;
  loop->body = body;
  loop->orelse = orelse;
  return loop;
}

Stmt* Parser::ParseFor(const Token* first, StmtKind kind) {
  Expect(kFor);
  Expr* target = ParseTargets();
  Expect(kIn);
  Expr* iter = ParseStarExpressions();
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  List<Stmt*> orelse = ParseElse();
  For* loop = Make<For>(BlockSpanFrom(first));
  loop->kind = kind;
  loop->target = target;
  loop->iter = iter;
  loop->body = body;
  loop->orelse = orelse;
  return loop;
}

// ---- with --------------------------------------------------------------------------------------

Stmt* Parser::ParseWith(const Token* first, StmtKind kind) {
  Expect(kWith);
  List<WithItem*> items;
  if (!At(kLParen) || !ParseParenthesizedItems(items)) {
    ListBuilder<WithItem> builder(*this);
    do {
      builder.Add(ParseWithItem());
    } while (Take(kComma));
    items = builder.Finish();
  }
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  With* with = Make<With>(BlockSpanFrom(first));
  with->kind = kind;
  with->items = items;
  with->body = body;
  return with;
}

// Whether the parenthesis holds the whole list of items; if not, the cursor stays, for then it is
// part of the first item's expression.
bool Parser::ParseParenthesizedItems(List<WithItem*>& items) {
  const State state = Mark();
  ++t_;
  {
    ListBuilder<WithItem> builder(*this);
    do {
      if (At(kRParen) && builder.size() > 0) break;
      builder.Add(ParseWithItem());
    } while (Take(kComma));
    Expect(kRParen);
    if (!failed_ && At(kColon)) {
      items = builder.Finish();
      return true;
    }
  }
  if (!has_error_) Rewind(state);
  return false;
}

WithItem* Parser::ParseWithItem() {
  WithItem* item = arena_.New<WithItem>();
  item->context_expr = ParseExpression();
  if (Take(kAs)) item->optional_vars = CheckTarget(ParseTarget());
  return item;
}

// ---- try ---------------------------------------------------------------------------------------

Stmt* Parser::ParseTry() {
  const Token* first = t_++;
  Expect(kColon);
  List<Stmt*> body = ParseBlock();
  ListBuilder<ExceptHandler> builder(*this);
  const bool star = At(kExcept) && t_[1].kind == kStar;
  while (At(kExcept)) builder.Add(ParseHandler(star));
  List<ExceptHandler*> handlers = builder.Finish();
  List<Stmt*> orelse = handlers.empty() ? List<Stmt*>{} : ParseElse();
  List<Stmt*> finalbody;
  if (Take(kFinally)) {
    Expect(kColon);
    finalbody = ParseBlock();
  } else if (handlers.empty()) {
    Fail();
  }
  Try* statement = Make<Try>(BlockSpanFrom(first));
  statement->kind = star ? StmtKind::kTryStar : StmtKind::kTry;
  statement->body = body;
  statement->handlers = handlers;
  statement->orelse = orelse;
  statement->finalbody = finalbody;
  return statement;
}

ExceptHandler* Parser::ParseHandler(bool star) {
  const Token* first = t_++;
  ExceptHandler* handler = arena_.New<ExceptHandler>();
  if (star) Expect(kStar);
  if (star || !At(kColon)) {
    handler->type = ParseExpression();
    if (Take(kAs)) handler->name = ExpectName();
  }
  Expect(kColon);
  handler->body = ParseBlock();
  handler->span = BlockSpanFrom(first);
  return handler;
}

// ---- match -------------------------------------------------------------------------------------

// "match" is a keyword only when a subject, a colon and a block of cases follow; null otherwise.
Stmt* Parser::ParseMatch() {
  switch (t_[1].kind) {
    case kEqual:
    case kDot:
    case kComma:
    case kRParen:
    case kColon:
    case kNewline:
    case kSemicolon:
      return nullptr;
    default:
      break;
  }
  const State state = Mark();
  const Token* first = t_++;
  Expr* subject = ParseMatchSubject();
  const bool is_match = !failed_ && At(kColon) && t_[1].kind == kNewline && t_[2].kind == kIndent &&
                        t_[3].kind == kName && t_[3].soft == SoftKeyword::kCase;
  if (!is_match) {
    if (!has_error_) Rewind(state);
    return nullptr;
  }
  t_ += 3;
  ListBuilder<MatchCase> cases(*this);
  while (!At(kDedent) && !failed_) cases.Add(ParseCase());
  Take(kDedent);
  Match* match = Make<Match>(BlockSpanFrom(first));
  match->subject = subject;
  match->cases = cases.Finish();
  return match;
}

Expr* Parser::ParseMatchSubject() {
  const Token* first = t_;
  Expr* subject = ParseStarNamedExpression();
  if (!At(kComma)) {
    if (first->kind == kStar) Fail();
    return subject;
  }
  ListBuilder<Expr> elts(*this);
  elts.Add(subject);
  while (Take(kComma) && !At(kColon)) elts.Add(ParseStarNamedExpression());
  return MakeTuple(first, elts.Finish());
}

MatchCase* Parser::ParseCase() {
  MatchCase* out = arena_.New<MatchCase>();
  if (!AtSoft(SoftKeyword::kCase)) Fail();
  if (failed_) return out;
  ++t_;
  out->pattern = ParsePatterns();
  if (Take(kIf)) out->guard = ParseNamedExpression();
  Expect(kColon);
  out->body = ParseBlock();
  return out;
}

}  // namespace caisson::python
