// SPDX-License-Identifier: Apache-2.0
// Random syntax trees that a parser could have made (constants not negative, no two literal parts
// of an f-string side by side, targets only where the grammar has them), for tests of the printer.
// The same seed gives the same tree.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "python/arena.h"
#include "python/ast.h"

namespace caisson::python {

class RandomAst {
 public:
  // The tree lives in `arena`.
  RandomAst(Arena& arena, std::uint64_t seed) : arena_(arena), random_(seed) {}

  Module MakeModule();

 private:
  template <typename T, typename Make>
  List<T*> Several(int least, int most, Make make);
  template <typename T>
  T* NewExpr();
  template <typename T>
  T* NewStmt(StmtKind kind);
  template <typename T>
  T* NewPattern();

  // A number from 0 to bound - 1.
  int Below(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }
  std::string_view Identifier();
  std::string_view Text();

  Expr* MakeExpr(int depth);
  Expr* MakeLeaf();
  Expr* MakeConstant();
  Expr* MakeString();
  Expr* MakeOperator(int depth);
  Expr* MakeDisplay(int depth);
  Expr* MakeComprehension(int depth);
  Expr* MakePostfix(int depth);
  Expr* MakeJoinedStr(int depth, bool is_format_spec);
  Expr* MakeElement(int depth);
  Expr* MakeSlice(int depth);
  Expr* MakeLambda(int depth);
  Expr* MakeTarget(int depth, ExprContext ctx);
  Expr* MakeSimpleTarget(int depth, ExprContext ctx);
  Expr* MakeName(ExprContext ctx);
  Arguments* MakeArguments(int depth, bool annotated);
  Arg* MakeArg(int depth, bool annotated);
  Keyword* MakeKeyword(int depth);
  Comprehension* MakeGenerator(int depth);
  TypeParam* MakeTypeParam(int depth);

  List<Stmt*> MakeBlock(int depth);
  List<Stmt*> MaybeBlock(int depth);
  Stmt* MakeStmt(int depth);
  Stmt* MakeCompound(int depth);
  Stmt* MakeFunction(int depth);
  Stmt* MakeClass(int depth);
  Stmt* MakeWith(int depth);
  Stmt* MakeTry(int depth);
  Stmt* MakeMatch(int depth);
  Stmt* MakeSimple(int depth);
  Stmt* MakeAssignment(int depth);
  Stmt* MakeImport();

  Pattern* MakePattern(int depth);
  Pattern* MakeClosedPattern(int depth);
  List<Pattern*> MakeSequence(int depth);
  Expr* MakePatternValue(bool is_key);

  Arena& arena_;
  std::mt19937_64 random_;
};

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

}  // namespace caisson::python
