// SPDX-License-Identifier: Apache-2.0
// Statements and patterns; random_ast.cc makes the expressions in them.
#include <array>
#include <vector>

#include "random_ast.h"

namespace caisson::python {
namespace {

constexpr int kDepth = 4;

}  // namespace

// ---- statements ---------------------------------------------------------------------------------

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

// ---- patterns -----------------------------------------------------------------------------------

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
