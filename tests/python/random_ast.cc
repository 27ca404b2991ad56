// SPDX-License-Identifier: Apache-2.0
#include "random_ast.h"

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace caisson::python {
namespace {

// Soft keywords among them, and one that is a keyword unless it is written with other letters.
constexpr std::array<std::string_view, 14> kIdentifiers = {
    "a",     "b",  "x", "value", "match", "case", "type",
    "print", "_x", "f", "rb",    "if",    "None", "\xC3\xA9t\xC3\xA9"};

constexpr std::array<std::string_view, 16> kTexts = {"",
                                                     "a",
                                                     "it's",
                                                     "\"q\"",
                                                     "'\"",
                                                     "\\",
                                                     "{",
                                                     "}}",
                                                     "\n",
                                                     "\t",
                                                     "\x01z",
                                                     "#:!=",
                                                     "N{",
                                                     "\xC3\xBC\xE2\x82\xAC",
                                                     "\xF0\x9F\x98\x80",
                                                     "\xED\xA0\x80"};

}  // namespace

std::string_view RandomAst::Identifier() {
  return kIdentifiers[static_cast<std::size_t>(Below(kIdentifiers.size()))];
}

std::string_view RandomAst::Text() {
  std::string text(kTexts[static_cast<std::size_t>(Below(kTexts.size()))]);
  if (Chance(30)) text += kTexts[static_cast<std::size_t>(Below(kTexts.size() - 1))];
  return arena_.Copy(std::string_view(text));
}

// ---- expressions --------------------------------------------------------------------------------

Expr* RandomAst::MakeName(ExprContext ctx) {
  auto* name = NewExpr<Name>();
  name->id = Identifier();
  name->ctx = ctx;
  return name;
}

Expr* RandomAst::MakeString() {
  auto* constant = NewExpr<Constant>();
  constant->constant = Chance(75) ? ConstantKind::kStr : ConstantKind::kBytes;
  constant->text = Text();
  constant->unicode_prefix = constant->constant == ConstantKind::kStr && Chance(10);
  return constant;
}

Expr* RandomAst::MakeConstant() {
  if (Chance(40)) return MakeString();
  auto* constant = NewExpr<Constant>();
  constexpr std::array<double, 7> kDoubles = {
      0.0, 1.5, 1e22, 5e-324, 1e16, 0.1, std::numeric_limits<double>::infinity()};
  constant->constant = static_cast<ConstantKind>(Below(static_cast<int>(ConstantKind::kStr)));
  constant->integer = Chance(10) ? std::numeric_limits<std::int64_t>::max() : Below(300);
  constant->number = kDoubles[static_cast<std::size_t>(Below(kDoubles.size()))];
  constant->text = "8000000000000000";
  return constant;
}

Expr* RandomAst::MakeLeaf() { return Chance(50) ? MakeName(ExprContext::kLoad) : MakeConstant(); }

Expr* RandomAst::MakeOperator(int depth) {
  switch (Below(7)) {
    case 0: {
      auto* expr = NewExpr<BoolOp>();
      expr->op = static_cast<BoolOperator>(Below(2));
      expr->values = Several<Expr>(2, 3, [&] { return MakeExpr(depth); });
      return expr;
    }
    case 1:
    case 2: {
      auto* expr = NewExpr<BinOp>();
      expr->left = MakeExpr(depth);
      expr->op = static_cast<BinaryOperator>(Below(13));
      expr->right = MakeExpr(depth);
      return expr;
    }
    case 3: {
      auto* expr = NewExpr<UnaryOp>();
      expr->op = static_cast<UnaryOperator>(Below(4));
      expr->operand = MakeExpr(depth);
      return expr;
    }
    case 4: {
      auto* expr = NewExpr<Compare>();
      expr->left = MakeExpr(depth);
      expr->comparators = Several<Expr>(1, 2, [&] { return MakeExpr(depth); });
      std::vector<CompareOperator> ops;
      for (std::size_t i = 0; i < expr->comparators.size(); ++i) {
        ops.push_back(static_cast<CompareOperator>(Below(10)));
      }
      expr->ops = arena_.Copy(std::span<CompareOperator const>(ops));
      return expr;
    }
    case 5: {
      auto* expr = NewExpr<IfExp>();
      expr->test = MakeExpr(depth);
      expr->body = MakeExpr(depth);
      expr->orelse = MakeExpr(depth);
      return expr;
    }
    default: {
      auto* expr = NewExpr<NamedExpr>();
      expr->target = MakeName(ExprContext::kStore);
      expr->value = MakeExpr(depth);
      return expr;
    }
  }
}

// An element of a display, which may be starred.
Expr* RandomAst::MakeElement(int depth) {
  if (!Chance(15)) return MakeExpr(depth);
  auto* starred = NewExpr<Starred>();
  starred->value = MakeExpr(depth);
  return starred;
}

Expr* RandomAst::MakeDisplay(int depth) {
  switch (Below(4)) {
    case 0: {
      auto* expr = NewExpr<ListExpr>();
      expr->elts = Several<Expr>(0, 3, [&] { return MakeElement(depth); });
      return expr;
    }
    case 1: {
      auto* expr = NewExpr<Tuple>();
      expr->elts = Several<Expr>(0, 3, [&] { return MakeElement(depth); });
      return expr;
    }
    case 2: {
      auto* expr = NewExpr<Set>();
      expr->elts = Several<Expr>(1, 3, [&] { return MakeElement(depth); });
      return expr;
    }
    default: {
      auto* expr = NewExpr<Dict>();
      expr->values = Several<Expr>(0, 3, [&] { return MakeExpr(depth); });
      std::vector<Expr*> keys;
      for (std::size_t i = 0; i < expr->values.size(); ++i) {
        keys.push_back(Chance(20) ? nullptr : MakeExpr(depth));
      }
      expr->keys = arena_.Copy(std::span<Expr* const>(keys));
      return expr;
    }
  }
}

Comprehension* RandomAst::MakeGenerator(int depth) {
  auto* generator = arena_.New<Comprehension>();
  generator->target = MakeTarget(depth, ExprContext::kStore);
  generator->iter = MakeExpr(depth);
  generator->ifs = Several<Expr>(0, 2, [&] { return MakeExpr(depth); });
  generator->is_async = Chance(20);
  return generator;
}

Expr* RandomAst::MakeComprehension(int depth) {
  const auto generators = Several<Comprehension>(1, 2, [&] { return MakeGenerator(depth); });
  switch (Below(4)) {
    case 0: {
      auto* expr = NewExpr<ListComp>();
      expr->elt = MakeExpr(depth);
      expr->generators = generators;
      return expr;
    }
    case 1: {
      auto* expr = NewExpr<SetComp>();
      expr->elt = MakeExpr(depth);
      expr->generators = generators;
      return expr;
    }
    case 2: {
      auto* expr = NewExpr<GeneratorExp>();
      expr->elt = MakeExpr(depth);
      expr->generators = generators;
      return expr;
    }
    default: {
      auto* expr = NewExpr<DictComp>();
      expr->key = MakeExpr(depth);
      expr->value = MakeExpr(depth);
      expr->generators = generators;
      return expr;
    }
  }
}

Keyword* RandomAst::MakeKeyword(int depth) {
  auto* keyword = arena_.New<Keyword>();
  if (Chance(75)) keyword->arg = Identifier();
  keyword->value = MakeExpr(depth);
  return keyword;
}

Expr* RandomAst::MakeSlice(int depth) {
  if (!Chance(40)) return MakeExpr(depth);
  auto* slice = NewExpr<Slice>();
  if (Chance(60)) slice->lower = MakeExpr(depth);
  if (Chance(60)) slice->upper = MakeExpr(depth);
  if (Chance(40)) slice->step = MakeExpr(depth);
  return slice;
}

Expr* RandomAst::MakePostfix(int depth) {
  switch (Below(3)) {
    case 0: {
      auto* expr = NewExpr<Attribute>();
      expr->value = MakeExpr(depth);
      expr->attr = Identifier();
      return expr;
    }
    case 1: {
      auto* expr = NewExpr<Subscript>();
      expr->value = MakeExpr(depth);
      if (Chance(70)) {
        expr->slice = MakeSlice(depth);
        return expr;
      }
      auto* tuple = NewExpr<Tuple>();
      tuple->elts =
          Several<Expr>(1, 3, [&] { return Chance(15) ? MakeElement(depth) : MakeSlice(depth); });
      expr->slice = tuple;
      return expr;
    }
    default: {
      auto* expr = NewExpr<Call>();
      expr->func = MakeExpr(depth);
      expr->args = Several<Expr>(0, 2, [&] { return MakeElement(depth); });
      expr->keywords = Several<Keyword>(0, 2, [&] { return MakeKeyword(depth); });
      return expr;
    }
  }
}

Arg* RandomAst::MakeArg(int depth, bool annotated) {
  auto* arg = arena_.New<Arg>();
  arg->arg = Identifier();
  if (annotated && Chance(40)) arg->annotation = MakeExpr(depth);
  return arg;
}

Arguments* RandomAst::MakeArguments(int depth, bool annotated) {
  auto* args = arena_.New<Arguments>();
  const auto make = [&] { return MakeArg(depth, annotated); };
  args->posonlyargs = Several<Arg>(0, Chance(20) ? 2 : 0, make);
  args->args = Several<Arg>(0, 2, make);
  const int positional = static_cast<int>(args->posonlyargs.size() + args->args.size());
  args->defaults = Several<Expr>(0, positional, [&] { return MakeExpr(depth); });
  if (Chance(25)) args->vararg = make();
  if (args->vararg != nullptr && annotated && Chance(20)) {
    auto* starred = NewExpr<Starred>();
    starred->value = MakeExpr(depth);
    args->vararg->annotation = starred;
  }
  args->kwonlyargs = Several<Arg>(0, Chance(30) ? 2 : 0, make);
  std::vector<Expr*> defaults;
  for (std::size_t i = 0; i < args->kwonlyargs.size(); ++i) {
    defaults.push_back(Chance(50) ? nullptr : MakeExpr(depth));
  }
  args->kw_defaults = arena_.Copy(std::span<Expr* const>(defaults));
  if (Chance(20)) args->kwarg = make();
  return args;
}

Expr* RandomAst::MakeLambda(int depth) {
  auto* expr = NewExpr<Lambda>();
  expr->args = MakeArguments(depth, false);
  expr->body = MakeExpr(depth);
  return expr;
}

Expr* RandomAst::MakeJoinedStr(int depth, bool is_format_spec) {
  auto* expr = NewExpr<JoinedStr>();
  bool after_text = is_format_spec;
  // The parser of Python 3.12 ends a format specification that ends in a field with an empty text.
  expr->values = Several<Expr>(is_format_spec ? 1 : 0, 3, [&]() -> Expr* {
    if (after_text || is_format_spec || Chance(50)) {
      after_text = false;
      auto* field = NewExpr<FormattedValue>();
      field->value = MakeExpr(depth);
      constexpr std::array<int, 4> kConversions = {-1, 's', 'r', 'a'};
      field->conversion = kConversions[static_cast<std::size_t>(Below(4))];
      if (!is_format_spec && Chance(30)) field->format_spec = MakeJoinedStr(depth, true);
      return field;
    }
    after_text = true;
    auto* text = NewExpr<Constant>();
    text->constant = ConstantKind::kStr;
    while (text->text.empty()) text->text = Text();
    return text;
  });
  if (!is_format_spec) return expr;
  std::vector<Expr*> values(expr->values.begin(), expr->values.end());
  auto* text = NewExpr<Constant>();
  text->constant = ConstantKind::kStr;
  text->text = Chance(50) ? std::string_view("") : Text();
  values.push_back(text);
  expr->values = arena_.Copy(std::span<Expr* const>(values));
  return expr;
}

Expr* RandomAst::MakeExpr(int depth) {
  if (depth <= 0) return MakeLeaf();
  switch (Below(12)) {
    case 0:
    case 1:
    case 2:
      return MakeOperator(depth - 1);
    case 3:
      return MakeDisplay(depth - 1);
    case 4:
      return MakeComprehension(depth - 2);
    case 5:
    case 6:
      return MakePostfix(depth - 1);
    case 7:
      return MakeJoinedStr(depth - 2, false);
    case 8:
      return MakeLambda(depth - 2);
    case 9: {
      if (Chance(50)) {
        auto* expr = NewExpr<Await>();
        expr->value = MakeExpr(depth - 1);
        return expr;
      }
      if (Chance(50)) {
        auto* expr = NewExpr<YieldFrom>();
        expr->value = MakeExpr(depth - 1);
        return expr;
      }
      auto* expr = NewExpr<Yield>();
      if (Chance(70)) expr->value = MakeExpr(depth - 1);
      return expr;
    }
    default:
      return MakeLeaf();
  }
}

// ---- targets ------------------------------------------------------------------------------------

Expr* RandomAst::MakeSimpleTarget(int depth, ExprContext ctx) {
  if (depth <= 0 || Chance(60)) return MakeName(ctx);
  if (Chance(50)) {
    auto* expr = NewExpr<Attribute>();
    expr->value = MakeExpr(depth - 1);
    expr->attr = Identifier();
    expr->ctx = ctx;
    return expr;
  }
  auto* expr = NewExpr<Subscript>();
  expr->value = MakeExpr(depth - 1);
  expr->slice = MakeSlice(depth - 1);
  expr->ctx = ctx;
  return expr;
}

Expr* RandomAst::MakeTarget(int depth, ExprContext ctx) {
  if (depth <= 0 || Chance(70)) return MakeSimpleTarget(depth, ctx);
  const auto element = [&]() -> Expr* {
    if (ctx == ExprContext::kDel || !Chance(20)) return MakeTarget(depth - 1, ctx);
    auto* starred = NewExpr<Starred>();
    starred->value = MakeSimpleTarget(depth - 1, ctx);
    starred->ctx = ctx;
    return starred;
  };
  if (Chance(50)) {
    auto* expr = NewExpr<Tuple>();
    expr->elts = Several<Expr>(0, 3, element);
    expr->ctx = ctx;
    return expr;
  }
  auto* expr = NewExpr<ListExpr>();
  expr->elts = Several<Expr>(0, 3, element);
  expr->ctx = ctx;
  return expr;
}

}  // namespace caisson::python
