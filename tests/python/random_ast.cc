// SPDX-License-Identifier: Apache-2.0
#include "random_ast.h"

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace caisson::python {
namespace {

constexpr int kDepth = 4;

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

template <typename T, typename Make>
List<T*> RandomAst::Several(int least, int most, Make make) {
  std::vector<T*> items;
  for (int count = least + Below(most - least + 1); count > 0; --count) items.push_back(make());
  return arena_.Copy(std::span<T* const>(items));
}

template <typename T>
T* RandomAst::NewExpr() {
  T* node = arena_.New<T>();
  node->kind = T::kKind;
  return node;
}

template <typename T>
T* RandomAst::NewStmt(StmtKind kind) {
  T* node = arena_.New<T>();
  node->kind = kind;
  return node;
}

template <typename T>
T* RandomAst::NewPattern() {
  T* node = arena_.New<T>();
  node->kind = T::kKind;
  return node;
}

std::string_view RandomAst::Identifier() {
  return kIdentifiers[static_cast<std::size_t>(Below(kIdentifiers.size()))];
}

std::string_view RandomAst::Text() {
  std::string text(kTexts[static_cast<std::size_t>(Below(kTexts.size()))]);
  if (Chance(30)) text += kTexts[static_cast<std::size_t>(Below(kTexts.size() - 1))];
  return arena_.Copy(std::string_view(text));
}

// ---- expressions
// ---------------------------------------------------------------------------------

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

// ---- targets
// -------------------------------------------------------------------------------------

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

// ---- statements
// ----------------------------------------------------------------------------------

List<Stmt*> RandomAst::MakeBlock(int depth) {
  return Several<Stmt>(1, 2, [&] { return MakeStmt(depth); });
}

List<Stmt*> RandomAst::MaybeBlock(int depth) {
  return Chance(40) ? MakeBlock(depth) : List<Stmt*>();
}

TypeParam* RandomAst::MakeTypeParam(int depth) {
  auto* param = arena_.New<TypeParam>();
  param->kind = static_cast<TypeParamKind>(Below(3));
  param->name = Identifier();
  if (param->kind == TypeParamKind::kTypeVar && Chance(40)) param->bound = MakeExpr(depth);
  return param;
}

Stmt* RandomAst::MakeFunction(int depth) {
  auto* stmt =
      NewStmt<FunctionDef>(Chance(50) ? StmtKind::kFunctionDef : StmtKind::kAsyncFunctionDef);
  stmt->name = Identifier();
  stmt->args = MakeArguments(depth, true);
  stmt->body = MakeBlock(depth);
  stmt->decorator_list = Several<Expr>(0, 1, [&] { return MakeExpr(depth); });
  if (Chance(30)) stmt->returns = MakeExpr(depth);
  stmt->type_params =
      Several<TypeParam>(0, Chance(30) ? 2 : 0, [&] { return MakeTypeParam(depth); });
  return stmt;
}

Stmt* RandomAst::MakeClass(int depth) {
  auto* stmt = NewStmt<ClassDef>(StmtKind::kClassDef);
  stmt->name = Identifier();
  stmt->bases = Several<Expr>(0, 2, [&] { return MakeElement(depth); });
  stmt->keywords = Several<Keyword>(0, 1, [&] { return MakeKeyword(depth); });
  stmt->body = MakeBlock(depth);
  stmt->decorator_list = Several<Expr>(0, 1, [&] { return MakeExpr(depth); });
  stmt->type_params =
      Several<TypeParam>(0, Chance(30) ? 2 : 0, [&] { return MakeTypeParam(depth); });
  return stmt;
}

Stmt* RandomAst::MakeWith(int depth) {
  auto* stmt = NewStmt<With>(Chance(50) ? StmtKind::kWith : StmtKind::kAsyncWith);
  stmt->items = Several<WithItem>(1, 2, [&] {
    auto* item = arena_.New<WithItem>();
    item->context_expr = MakeExpr(depth);
    if (Chance(50)) item->optional_vars = MakeTarget(depth, ExprContext::kStore);
    return item;
  });
  stmt->body = MakeBlock(depth);
  return stmt;
}

Stmt* RandomAst::MakeTry(int depth) {
  auto* stmt = NewStmt<Try>(Chance(70) ? StmtKind::kTry : StmtKind::kTryStar);
  const bool star = stmt->kind == StmtKind::kTryStar;
  stmt->body = MakeBlock(depth);
  stmt->handlers = Several<ExceptHandler>(star ? 1 : 0, 2, [&] {
    auto* handler = arena_.New<ExceptHandler>();
    handler->type = MakeExpr(depth);
    if (Chance(50)) handler->name = Identifier();
    handler->body = MakeBlock(depth);
    return handler;
  });
  if (!stmt->handlers.empty()) stmt->orelse = MaybeBlock(depth);
  stmt->finalbody = stmt->handlers.empty() ? MakeBlock(depth) : MaybeBlock(depth);
  return stmt;
}

Stmt* RandomAst::MakeMatch(int depth) {
  auto* stmt = NewStmt<Match>(StmtKind::kMatch);
  stmt->subject = MakeExpr(depth);
  stmt->cases = Several<MatchCase>(1, 2, [&] {
    auto* match_case = arena_.New<MatchCase>();
    match_case->pattern = MakePattern(kDepth - 1);
    if (Chance(30)) match_case->guard = MakeExpr(depth);
    match_case->body = MakeBlock(depth);
    return match_case;
  });
  return stmt;
}

Stmt* RandomAst::MakeCompound(int depth) {
  switch (Below(8)) {
    case 0:
      return MakeFunction(depth);
    case 1:
      return MakeClass(depth);
    case 2:
      return MakeWith(depth);
    case 3:
      return MakeTry(depth);
    case 4:
      return MakeMatch(depth);
    case 5: {
      auto* stmt = NewStmt<For>(Chance(50) ? StmtKind::kFor : StmtKind::kAsyncFor);
      stmt->target = MakeTarget(depth, ExprContext::kStore);
      stmt->iter = MakeExpr(depth);
      stmt->body = MakeBlock(depth);
      stmt->orelse = MaybeBlock(depth);
      return stmt;
    }
    case 6: {
      auto* stmt = NewStmt<While>(StmtKind::kWhile);
      stmt->test = MakeExpr(depth);
      stmt->body = MakeBlock(depth);
      stmt->orelse = MaybeBlock(depth);
      return stmt;
    }
    default: {
      auto* stmt = NewStmt<If>(StmtKind::kIf);
      stmt->test = MakeExpr(depth);
      stmt->body = MakeBlock(depth);
      stmt->orelse = MaybeBlock(depth);
      return stmt;
    }
  }
}

Stmt* RandomAst::MakeAssignment(int depth) {
  switch (Below(4)) {
    case 0: {
      auto* stmt = NewStmt<AugAssign>(StmtKind::kAugAssign);
      stmt->target = MakeSimpleTarget(depth, ExprContext::kStore);
      stmt->op = static_cast<BinaryOperator>(Below(13));
      stmt->value = MakeExpr(depth);
      return stmt;
    }
    case 1: {
      auto* stmt = NewStmt<AnnAssign>(StmtKind::kAnnAssign);
      stmt->target = MakeSimpleTarget(depth, ExprContext::kStore);
      stmt->annotation = MakeExpr(depth);
      if (Chance(60)) stmt->value = MakeExpr(depth);
      stmt->simple = IsA<Name>(stmt->target) != nullptr && Chance(70);
      return stmt;
    }
    case 2: {
      auto* stmt = NewStmt<TypeAlias>(StmtKind::kTypeAlias);
      stmt->name = MakeName(ExprContext::kStore);
      stmt->type_params =
          Several<TypeParam>(0, Chance(30) ? 2 : 0, [&] { return MakeTypeParam(depth); });
      stmt->value = MakeExpr(depth);
      return stmt;
    }
    default: {
      auto* stmt = NewStmt<Assign>(StmtKind::kAssign);
      stmt->targets = Several<Expr>(1, 2, [&] { return MakeTarget(depth, ExprContext::kStore); });
      stmt->value = MakeExpr(depth);
      return stmt;
    }
  }
}

Stmt* RandomAst::MakeImport() {
  const auto make_alias = [&] {
    auto* alias = arena_.New<Alias>();
    alias->name = Identifier();
    if (Chance(40)) alias->asname = Identifier();
    return alias;
  };
  if (Chance(40)) {
    auto* stmt = NewStmt<Import>(StmtKind::kImport);
    stmt->names = Several<Alias>(1, 2, make_alias);
    return stmt;
  }
  auto* stmt = NewStmt<ImportFrom>(StmtKind::kImportFrom);
  stmt->level = Below(5);
  if (stmt->level == 0 || Chance(50)) stmt->module = Chance(50) ? "pkg.if.mod" : Identifier();
  stmt->names = Several<Alias>(1, 2, make_alias);
  if (Chance(20)) {
    auto* star = arena_.New<Alias>();
    star->name = "*";
    stmt->names = Several<Alias>(1, 1, [&] { return star; });
  }
  return stmt;
}

Stmt* RandomAst::MakeSimple(int depth) {
  switch (Below(12)) {
    case 0: {
      auto* stmt = NewStmt<Return>(StmtKind::kReturn);
      if (Chance(80)) stmt->value = MakeExpr(depth);
      return stmt;
    }
    case 1: {
      auto* stmt = NewStmt<Delete>(StmtKind::kDelete);
      stmt->targets = Several<Expr>(1, 2, [&] { return MakeTarget(depth, ExprContext::kDel); });
      return stmt;
    }
    case 2:
    case 3:
    case 4:
      return MakeAssignment(depth);
    case 5: {
      auto* stmt = NewStmt<Raise>(StmtKind::kRaise);
      if (Chance(80)) stmt->exc = MakeExpr(depth);
      if (stmt->exc != nullptr && Chance(40)) stmt->cause = MakeExpr(depth);
      return stmt;
    }
    case 6: {
      auto* stmt = NewStmt<Assert>(StmtKind::kAssert);
      stmt->test = MakeExpr(depth);
      if (Chance(40)) stmt->msg = MakeExpr(depth);
      return stmt;
    }
    case 7:
      return MakeImport();
    case 8: {
      const std::array<std::string_view, 2> names = {Identifier(), Identifier()};
      auto* stmt = NewStmt<Global>(StmtKind::kGlobal);
      stmt->names = arena_.Copy(std::span<std::string_view const>(names));
      if (Chance(50)) return stmt;
      auto* nonlocal = NewStmt<Nonlocal>(StmtKind::kNonlocal);
      nonlocal->names = stmt->names;
      return nonlocal;
    }
    case 9: {
      constexpr std::array<StmtKind, 3> kKinds = {StmtKind::kPass, StmtKind::kBreak,
                                                  StmtKind::kContinue};
      return NewStmt<Stmt>(kKinds[static_cast<std::size_t>(Below(3))]);
    }
    default: {
      auto* stmt = NewStmt<ExprStmt>(StmtKind::kExpr);
      stmt->value = MakeExpr(depth);
      return stmt;
    }
  }
}

Stmt* RandomAst::MakeStmt(int depth) {
  return depth > 0 && Chance(40) ? MakeCompound(depth - 1) : MakeSimple(depth);
}

// ---- patterns
// ------------------------------------------------------------------------------------

// A literal, a signed or complex number, or (always dotted) a name.
Expr* RandomAst::MakePatternValue(bool is_key) {
  if (Chance(30)) {
    auto* attribute = NewExpr<Attribute>();
    attribute->value = MakeName(ExprContext::kLoad);
    attribute->attr = Identifier();
    return attribute;
  }
  if (Chance(40)) return MakeString();
  auto* constant = NewExpr<Constant>();
  constant->constant = ConstantKind::kInt;
  constant->integer = Below(10);
  Expr* number = constant;
  if (Chance(30)) {
    auto* negative = NewExpr<UnaryOp>();
    negative->op = UnaryOperator::kUSub;
    negative->operand = number;
    number = negative;
  }
  if (is_key || !Chance(20)) return number;
  auto* imaginary = NewExpr<Constant>();
  imaginary->constant = ConstantKind::kComplex;
  imaginary->number = 2;
  auto* sum = NewExpr<BinOp>();
  sum->left = number;
  sum->op = Chance(50) ? BinaryOperator::kAdd : BinaryOperator::kSub;
  sum->right = imaginary;
  return sum;
}

List<Pattern*> RandomAst::MakeSequence(int depth) {
  return Several<Pattern>(0, 3, [&]() -> Pattern* {
    if (!Chance(20)) return MakePattern(depth);
    auto* star = NewPattern<MatchStar>();
    if (Chance(50)) star->name = Identifier();
    return star;
  });
}

Pattern* RandomAst::MakeClosedPattern(int depth) {
  switch (depth <= 0 ? Below(3) : Below(6)) {
    case 0: {
      auto* value = NewPattern<MatchValue>();
      value->value = MakePatternValue(false);
      return value;
    }
    case 1: {
      auto* singleton = NewPattern<MatchSingleton>();
      constexpr std::array<ConstantKind, 3> kSingletons = {ConstantKind::kNone, ConstantKind::kTrue,
                                                           ConstantKind::kFalse};
      singleton->value = kSingletons[static_cast<std::size_t>(Below(3))];
      return singleton;
    }
    case 2: {
      auto* capture = NewPattern<MatchAs>();
      if (Chance(70)) capture->name = Identifier();
      return capture;
    }
    case 3: {
      auto* sequence = NewPattern<MatchSequence>();
      sequence->patterns = MakeSequence(depth - 1);
      return sequence;
    }
    case 4: {
      auto* mapping = NewPattern<MatchMapping>();
      mapping->patterns = Several<Pattern>(0, 2, [&] { return MakePattern(depth - 1); });
      std::vector<Expr*> keys;
      for (std::size_t i = 0; i < mapping->patterns.size(); ++i) {
        keys.push_back(MakePatternValue(true));
      }
      mapping->keys = arena_.Copy(std::span<Expr* const>(keys));
      if (Chance(40)) mapping->rest = Identifier();
      return mapping;
    }
    default: {
      auto* matched = NewPattern<MatchClass>();
      matched->cls = MakeName(ExprContext::kLoad);
      matched->patterns = Several<Pattern>(0, 2, [&] { return MakePattern(depth - 1); });
      matched->kwd_patterns = Several<Pattern>(0, 2, [&] { return MakePattern(depth - 1); });
      std::vector<std::string_view> names;
      for (std::size_t i = 0; i < matched->kwd_patterns.size(); ++i) names.push_back(Identifier());
      matched->kwd_attrs = arena_.Copy(std::span<std::string_view const>(names));
      return matched;
    }
  }
}

Pattern* RandomAst::MakePattern(int depth) {
  if (depth > 0 && Chance(20)) {
    auto* either = NewPattern<MatchOr>();
    either->patterns = Several<Pattern>(2, 3, [&] { return MakePattern(depth - 1); });
    return either;
  }
  if (depth > 0 && Chance(20)) {
    auto* as = NewPattern<MatchAs>();
    as->pattern = MakePattern(depth - 1);
    as->name = Identifier();
    return as;
  }
  return MakeClosedPattern(depth);
}

Module RandomAst::MakeModule() {
  return {Several<Stmt>(1, 4, [&] { return MakeStmt(kDepth); })};
}

}  // namespace caisson::python
