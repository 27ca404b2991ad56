// SPDX-License-Identifier: Apache-2.0
// Primaries (attributes, calls, subscripts), atoms, comprehensions and parameter lists.
#include "python/literals.h"
#include "python/parser_core.h"

namespace caisson::python {

using enum TokenKind;

// ---- primaries ---------------------------------------------------------------------------------

Expr* Parser::ParseAwaitPrimary() {
  if (!At(kAwait)) return ParsePrimary();
  const Token* first = t_++;
  Expr* value = ParsePrimary();
  Await* await = Make<Await>(SpanFrom(first));
  await->value = value;
  return await;
}

Expr* Parser::ParsePrimary() {
  const Token* first = t_;
  Expr* expr = ParseAtom();
  for (;;) {
    switch (t_->kind) {
      case kDot: {
        ++t_;
        const std::string_view name = ExpectName();
        Attribute* attribute = Make<Attribute>(SpanFrom(first));
        attribute->value = expr;
        attribute->attr = name;
        expr = attribute;
        break;
      }
      case kLParen:
        expr = ParseCallOn(first, expr);
        break;
      case kLBracket:
        expr = ParseSubscriptOn(first, expr);
        break;
      default:
        return expr;
    }
  }
}

Expr* Parser::ParseCallOn(const Token* first, Expr* func) {
  ++t_;
  List<Expr*> args;
  List<Keyword*> keywords;
  ParseArguments(args, keywords, true);
  Expect(kRParen);
  Call* call = Make<Call>(SpanFrom(first));
  call->func = func;
  call->args = args;
  call->keywords = keywords;
  return call;
}

Keyword* Parser::ParseKeyword() {
  const Token* first = t_;
  Keyword* keyword = arena_.New<Keyword>();
  if (!Take(kDoubleStar)) {
    keyword->arg = Identifier(*t_);
    t_ += 2;
  }
  keyword->value = ParseExpression();
  keyword->span = SpanFrom(first);
  return keyword;
}

// A positional argument. Only a sole one may be a generator without parentheses of its own; its
// place is then that of the call's, which start at `open`.
Expr* Parser::ParseArgument(const Token* open, bool allow_generator) {
  Expr* expr = ParseNamedExpression();
  if (!AtComprehension()) return expr;
  List<Comprehension*> generators = ParseComprehension();
  if (!allow_generator || !At(kRParen)) return Nowhere();
  GeneratorExp* generator = Make<GeneratorExp>(Between(*open, *t_));
  generator->elt = expr;
  generator->generators = generators;
  return generator;
}

// The arguments up to a ')' that is left. The cursor is after the '('.
void Parser::ParseArguments(List<Expr*>& args, List<Keyword*>& keywords, bool allow_generator) {
  const Token* open = t_ - 1;
  ListBuilder<Expr> positional(*this);
  std::vector<Keyword*> named;
  bool double_star_seen = false;
  do {
    if (At(kRParen)) break;
    if (At(kDoubleStar) || (At(kName) && t_[1].kind == kEqual)) {
      double_star_seen |= At(kDoubleStar);
      named.push_back(ParseKeyword());
    } else if (At(kStar)) {
      if (double_star_seen) return Fail();
      positional.Add(ParseStarred(&Parser::ParseExpression));
    } else {
      if (!named.empty()) return Fail();
      positional.Add(ParseArgument(open, allow_generator && positional.size() == 0));
      if (At(kEqual)) return Fail();
    }
  } while (Take(kComma));
  args = positional.Finish();
  keywords = arena_.Copy<Keyword*>(named);
}

Expr* Parser::ParseSubscriptOn(const Token* first, Expr* value) {
  ++t_;
  Expr* slice = ParseSlices();
  Expect(kRBracket);
  Subscript* subscript = Make<Subscript>(SpanFrom(first));
  subscript->value = value;
  subscript->slice = slice;
  return subscript;
}

Expr* Parser::ParseSlices() {
  const Token* first = t_;
  const bool starred = At(kStar);
  Expr* slice = ParseSlice();
  if (!At(kComma) && !starred) return slice;
  ListBuilder<Expr> elts(*this);
  elts.Add(slice);
  while (Take(kComma) && !At(kRBracket)) elts.Add(ParseSlice());
  return MakeTuple(first, elts.Finish());
}

Expr* Parser::ParseSlice() {
  if (At(kStar)) return ParseStarred(&Parser::ParseExpression);
  const Token* first = t_;
  Expr* lower = At(kColon) ? nullptr : ParseNamedExpression();
  if (!Take(kColon)) return lower;
  if (lower != nullptr && lower->kind == ExprKind::kNamedExpr && first[1].kind == kColonEqual) {
    return Nowhere();
  }
  const auto at_part = [&] { return !At(kColon) && !At(kComma) && !At(kRBracket); };
  Expr* upper = at_part() ? ParseExpression() : nullptr;
  Expr* step = nullptr;
  if (Take(kColon) && at_part()) step = ParseExpression();
  Slice* slice = Make<Slice>(SpanFrom(first));
  slice->lower = lower;
  slice->upper = upper;
  slice->step = step;
  return slice;
}

// ---- atoms -------------------------------------------------------------------------------------

Expr* Parser::ParseAtom() {
  switch (t_->kind) {
    case kName:
      return MakeName(*t_++, ExprContext::kLoad);
    case kNumber:
      return ParseNumber();
    case kString:
    case kFStringStart:
      return ParseStrings();
    case kTrue:
      return MakeConstant(*t_++, ConstantKind::kTrue);
    case kFalse:
      return MakeConstant(*t_++, ConstantKind::kFalse);
    case kNone:
      return MakeConstant(*t_++, ConstantKind::kNone);
    case kEllipsis:
      return MakeConstant(*t_++, ConstantKind::kEllipsis);
    case kLParen:
      return ParseParenthesized();
    case kLBracket:
      return ParseListDisplay();
    case kLBrace:
      return ParseBraces();
    default:
      return Nowhere();
  }
}

Expr* Parser::ParseNumber() {
  const Token& token = *t_++;
  Constant* constant = Make<Constant>(SpanOf(token));
  std::size_t digits = 0;
  if (!DecodeNumber(Text(token), arena_, *constant, digits)) {
    // CPython gives the line only, "to avoid a wall of 1000s of digits".
    FailWith(SyntaxError::Type::kSyntax, TooManyDigits(digits), {token.line, 0, token.end_line, 0});
  }
  return constant;
}

bool Parser::AtComprehension() const { return At(kFor) || (At(kAsync) && t_[1].kind == kFor); }

Expr* Parser::ParseParenthesized() {
  const Token* first = t_++;
  if (Take(kRParen)) return MakeTuple(first, {});
  if (At(kYield)) {
    Expr* yield = ParseYield();
    Expect(kRParen);
    return yield;
  }
  Expr* expr = ParseStarNamedExpression();
  if (At(kComma)) {
    ListBuilder<Expr> elts(*this);
    elts.Add(expr);
    while (Take(kComma) && !At(kRParen)) elts.Add(ParseStarNamedExpression());
    Expect(kRParen);
    return MakeTuple(first, elts.Finish());
  }
  if (expr->kind == ExprKind::kStarred && first[1].kind == kStar) return Nowhere();
  if (!AtComprehension()) {
    Expect(kRParen);
    return expr;
  }
  List<Comprehension*> generators = ParseComprehension();
  Expect(kRParen);
  GeneratorExp* generator = Make<GeneratorExp>(SpanFrom(first));
  generator->elt = expr;
  generator->generators = generators;
  return generator;
}

Expr* Parser::ParseListDisplay() {
  const Token* first = t_++;
  ListBuilder<Expr> elts(*this);
  if (!At(kRBracket)) {
    const bool starred = At(kStar);
    Expr* expr = ParseStarNamedExpression();
    if (!starred && AtComprehension()) {
      List<Comprehension*> generators = ParseComprehension();
      Expect(kRBracket);
      ListComp* comprehension = Make<ListComp>(SpanFrom(first));
      comprehension->elt = expr;
      comprehension->generators = generators;
      return comprehension;
    }
    elts.Add(expr);
    while (Take(kComma) && !At(kRBracket)) elts.Add(ParseStarNamedExpression());
  }
  Expect(kRBracket);
  ListExpr* list = Make<ListExpr>(SpanFrom(first));
  list->elts = elts.Finish();
  return list;
}

Expr* Parser::ParseBraces() {
  const Token* first = t_++;
  if (At(kRBrace) || At(kDoubleStar)) return ParseDict(first, nullptr);
  const bool starred = At(kStar);
  const Token* start = t_;
  Expr* expr = ParseStarNamedExpression();
  const bool named = At(kColon) && start[1].kind == kColonEqual && start->kind == kName;
  if (named) return Nowhere();
  if (!starred && At(kColon)) return ParseDict(first, expr);
  if (!starred && AtComprehension()) {
    List<Comprehension*> generators = ParseComprehension();
    Expect(kRBrace);
    SetComp* comprehension = Make<SetComp>(SpanFrom(first));
    comprehension->elt = expr;
    comprehension->generators = generators;
    return comprehension;
  }
  ListBuilder<Expr> elts(*this);
  elts.Add(expr);
  while (Take(kComma) && !At(kRBrace)) elts.Add(ParseStarNamedExpression());
  Expect(kRBrace);
  Set* set = Make<Set>(SpanFrom(first));
  set->elts = elts.Finish();
  return set;
}

// After '{' and, unless `key` is null, the first key.
Expr* Parser::ParseDict(const Token* first, Expr* key) {
  ListBuilder<Expr> items(*this);  // key, value, key, value ...
  bool may_be_comprehension = key != nullptr;
  while (!At(kRBrace) && !failed_) {
    if (key == nullptr && Take(kDoubleStar)) {
      items.Add(nullptr);
      items.Add(ParseBitwiseOr());
    } else {
      items.Add(key != nullptr ? key : ParseExpression());
      key = nullptr;
      Expect(kColon);
      items.Add(ParseExpression());
      if (may_be_comprehension && AtComprehension()) {
        return ParseDictComprehension(first, items[0], items[1]);
      }
    }
    may_be_comprehension = false;
    if (!Take(kComma)) break;
  }
  Expect(kRBrace);
  Dict* dict = Make<Dict>(SpanFrom(first));
  const std::size_t count = items.size() / 2;
  Expr** keys = arena_.NewArray<Expr*>(count);
  Expr** values = arena_.NewArray<Expr*>(count);
  for (std::size_t i = 0; i < count; ++i) {
    keys[i] = items[2 * i];
    values[i] = items[2 * i + 1];
  }
  dict->keys = {keys, count};
  dict->values = {values, count};
  return dict;
}

Expr* Parser::ParseDictComprehension(const Token* first, Expr* key, Expr* value) {
  List<Comprehension*> generators = ParseComprehension();
  Expect(kRBrace);
  DictComp* comprehension = Make<DictComp>(SpanFrom(first));
  comprehension->key = key;
  comprehension->value = value;
  comprehension->generators = generators;
  return comprehension;
}

List<Comprehension*> Parser::ParseComprehension() {
  ListBuilder<Comprehension> clauses(*this);
  while (AtComprehension()) {
    Comprehension* clause = arena_.New<Comprehension>();
    clause->is_async = Take(kAsync);
    Expect(kFor);
    clause->target = ParseTargets();
    Expect(kIn);
    clause->iter = ParseDisjunction();
    {
      ListBuilder<Expr> ifs(*this);
      while (Take(kIf)) ifs.Add(ParseDisjunction());
      clause->ifs = ifs.Finish();
    }
    clauses.Add(clause);
  }
  return clauses.Finish();
}

// ---- parameters --------------------------------------------------------------------------------

namespace {

// The parts of a parameter list while it is read.
struct ParameterLists {
  std::vector<Arg*> posonlyargs, args, kwonlyargs;
  std::vector<Expr*> defaults, kw_defaults;
};

}  // namespace

Arg* Parser::ParseParameter(bool annotated, bool star_annotation) {
  const Token* first = t_;
  Arg* arg = arena_.New<Arg>();
  arg->arg = ExpectName();
  if (annotated && Take(kColon)) {
    arg->annotation = star_annotation && At(kStar) ? ParseStarExpression() : ParseExpression();
  }
  arg->span = SpanFrom(first);
  return arg;
}

// Up to `end`, which is left.
Arguments* Parser::ParseParameters(TokenKind end, bool annotated) {
  Arguments* out = arena_.New<Arguments>();
  if (At(end)) return out;
  ParameterLists lists;
  bool slash_seen = false;
  bool star_seen = false;
  do {
    if (At(end)) break;
    if (Take(kDoubleStar)) {
      out->kwarg = ParseParameter(annotated, false);
      if (At(kEqual)) Fail();
      Take(kComma);
      break;
    }
    if (Take(kStar)) {
      if (star_seen) Fail();
      star_seen = true;
      if (At(kComma)) {
        // A bare '*' needs a name after it.
        if (t_[1].kind != kName) Fail();
      } else {
        out->vararg = ParseParameter(annotated, true);
        if (At(kEqual)) Fail();
      }
      continue;
    }
    if (At(kSlash)) {
      if (slash_seen || star_seen || lists.args.empty()) Fail();
      slash_seen = true;
      Take(kSlash);
      lists.posonlyargs.swap(lists.args);
      continue;
    }
    Arg* arg = ParseParameter(annotated, false);
    Expr* value = Take(kEqual) ? ParseExpression() : nullptr;
    if (star_seen) {
      lists.kwonlyargs.push_back(arg);
      lists.kw_defaults.push_back(value);
    } else {
      lists.args.push_back(arg);
      if (value != nullptr) {
        lists.defaults.push_back(value);
      } else if (!lists.defaults.empty()) {
        Fail();
      }
    }
  } while (Take(kComma));
  out->posonlyargs = arena_.Copy<Arg*>(lists.posonlyargs);
  out->args = arena_.Copy<Arg*>(lists.args);
  out->kwonlyargs = arena_.Copy<Arg*>(lists.kwonlyargs);
  out->kw_defaults = arena_.Copy<Expr*>(lists.kw_defaults);
  out->defaults = arena_.Copy<Expr*>(lists.defaults);
  return out;
}

}  // namespace caisson::python
