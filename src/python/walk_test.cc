// SPDX-License-Identifier: Apache-2.0
#include "python/walk.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "python/arena.h"

namespace caisson::python {
namespace {

// Builds `@d\ndef f(a: A = v): r` around plain names, so that the order of visits reads as letters.
class WalkTest : public testing::Test {
 protected:
  const Expr* NameOf(std::string_view id) {
    auto* name = arena_.New<Name>();
    name->kind = ExprKind::kName;
    name->id = id;
    return name;
  }
  Expr* Mutable(std::string_view id) { return const_cast<Expr*>(NameOf(id)); }
  template <typename T>
  List<T*> ListOf(std::vector<T*> items) {
    return arena_.Copy(std::span<T* const>(items));
  }

  static std::string Letter(NodeRef node) {
    if (const auto* name = IsA<Name>(node.expr())) return std::string(name->id);
    switch (node.kind()) {
      case NodeRef::Kind::kModule:
        return "<module>";
      case NodeRef::Kind::kStmt:
        return "<stmt>";
      case NodeRef::Kind::kArguments:
        return "<arguments>";
      case NodeRef::Kind::kArg:
        return "<arg>";
      case NodeRef::Kind::kExpr:
        return "<expr>";
      default:
        return "<other>";
    }
  }

  Arena arena_;
};

TEST_F(WalkTest, BreadthFirstVisitsAFunctionInCPythonsOrder) {
  auto* arg = arena_.New<Arg>();
  arg->arg = "a";
  arg->annotation = Mutable("A");
  auto* arguments = arena_.New<Arguments>();
  arguments->args = ListOf<Arg>({arg});
  arguments->defaults = ListOf<Expr>({Mutable("v")});
  auto* statement = arena_.New<ExprStmt>();
  statement->kind = StmtKind::kExpr;
  statement->value = Mutable("r");
  auto* function = arena_.New<FunctionDef>();
  function->kind = StmtKind::kFunctionDef;
  function->args = arguments;
  function->body = ListOf<Stmt>({statement});
  function->decorator_list = ListOf<Expr>({Mutable("d")});
  function->returns = Mutable("R");
  Module module{ListOf<Stmt>({function})};

  std::vector<std::string> seen;
  WalkBreadthFirst(&module, [&](NodeRef node) { seen.push_back(Letter(node)); });
  EXPECT_EQ(seen, (std::vector<std::string>{"<module>", "<stmt>", "<arguments>", "<stmt>", "d", "R",
                                            "<arg>", "v", "r", "A"}));
}

TEST_F(WalkTest, SkipsTheNullKeysOfADictDisplay) {
  auto* dict = arena_.New<Dict>();
  dict->kind = ExprKind::kDict;
  dict->keys = ListOf<Expr>({Mutable("k"), nullptr});
  dict->values = ListOf<Expr>({Mutable("v"), Mutable("w")});
  std::vector<std::string> seen;
  ForEachChild(static_cast<const Expr*>(dict), [&](NodeRef node) { seen.push_back(Letter(node)); });
  EXPECT_EQ(seen, (std::vector<std::string>{"k", "v", "w"}));
}

TEST_F(WalkTest, GivesTheSpanOnlyOfClassesThatHaveOne) {
  auto* name = arena_.New<Name>();
  name->span = {3, 1, 3, 4};
  EXPECT_EQ(NodeRef(static_cast<const Expr*>(name)).span(), (SourceSpan{3, 1, 3, 4}));
  EXPECT_FALSE(NodeRef(arena_.New<WithItem>()).span().known());
}

}  // namespace
}  // namespace caisson::python
