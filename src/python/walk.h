// SPDX-License-Identifier: Apache-2.0
// Generic traversal of the AST in the field order of CPython's `ast`: ForEachChild visits what
// `ast.iter_child_nodes` yields, WalkBreadthFirst what `ast.walk` does, in the same order. Contexts
// (Load, Store, Del) and operators, which are nodes to CPython, are plain fields here and are not
// visited; they have no children, so the order of the others is the same. Knows no policy, owns
// nothing: a NodeRef is valid as long as the tree is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "python/ast.h"

namespace caisson::python {

// One node of any class, by reference. Never null.
class NodeRef {
 public:
  enum class Kind : std::uint8_t {
    kModule,
    kStmt,
    kExpr,
    kPattern,
    kArguments,
    kArg,
    kKeyword,
    kComprehension,
    kAlias,
    kWithItem,
    kExceptHandler,
    kMatchCase,
    kTypeParam,
  };

  // Implicit: every node class is one.
  NodeRef(const Module* node) : kind_(Kind::kModule), node_(node) {}
  NodeRef(const Stmt* node) : kind_(Kind::kStmt), node_(node) {}
  NodeRef(const Expr* node) : kind_(Kind::kExpr), node_(node) {}
  NodeRef(const Pattern* node) : kind_(Kind::kPattern), node_(node) {}
  NodeRef(const Arguments* node) : kind_(Kind::kArguments), node_(node) {}
  NodeRef(const Arg* node) : kind_(Kind::kArg), node_(node) {}
  NodeRef(const Keyword* node) : kind_(Kind::kKeyword), node_(node) {}
  NodeRef(const Comprehension* node) : kind_(Kind::kComprehension), node_(node) {}
  NodeRef(const Alias* node) : kind_(Kind::kAlias), node_(node) {}
  NodeRef(const WithItem* node) : kind_(Kind::kWithItem), node_(node) {}
  NodeRef(const ExceptHandler* node) : kind_(Kind::kExceptHandler), node_(node) {}
  NodeRef(const MatchCase* node) : kind_(Kind::kMatchCase), node_(node) {}
  NodeRef(const TypeParam* node) : kind_(Kind::kTypeParam), node_(node) {}

  Kind kind() const { return kind_; }

  // The node as its class, or null where it is of another.
  const Module* module() const { return Get<Module>(Kind::kModule); }
  const Stmt* stmt() const { return Get<Stmt>(Kind::kStmt); }
  const Expr* expr() const { return Get<Expr>(Kind::kExpr); }
  const Pattern* pattern() const { return Get<Pattern>(Kind::kPattern); }
  const Arguments* arguments() const { return Get<Arguments>(Kind::kArguments); }
  const Arg* arg() const { return Get<Arg>(Kind::kArg); }
  const Keyword* keyword() const { return Get<Keyword>(Kind::kKeyword); }
  const Comprehension* comprehension() const { return Get<Comprehension>(Kind::kComprehension); }
  const Alias* alias() const { return Get<Alias>(Kind::kAlias); }
  const WithItem* with_item() const { return Get<WithItem>(Kind::kWithItem); }
  const ExceptHandler* except_handler() const { return Get<ExceptHandler>(Kind::kExceptHandler); }
  const MatchCase* match_case() const { return Get<MatchCase>(Kind::kMatchCase); }
  const TypeParam* type_param() const { return Get<TypeParam>(Kind::kTypeParam); }

  // The node's span; not known() for the classes that have no position in CPython either (Module,
  // Arguments, Comprehension, WithItem, MatchCase).
  SourceSpan span() const {
    switch (kind_) {
      case Kind::kStmt:
        return stmt()->span;
      case Kind::kExpr:
        return expr()->span;
      case Kind::kPattern:
        return pattern()->span;
      case Kind::kArg:
        return arg()->span;
      case Kind::kKeyword:
        return keyword()->span;
      case Kind::kAlias:
        return alias()->span;
      case Kind::kExceptHandler:
        return except_handler()->span;
      case Kind::kTypeParam:
        return type_param()->span;
      default:
        return {};
    }
  }

  bool operator==(const NodeRef&) const = default;

 private:
  template <typename T>
  const T* Get(Kind kind) const {
    return kind_ == kind ? static_cast<const T*>(node_) : nullptr;
  }

  Kind kind_;
  const void* node_;
};

namespace internal {

// Calls `visit` for each non-null node of `node`'s fields, in order.
template <typename Visitor>
struct ChildVisitor {
  Visitor& visit;

  template <typename T>
  void One(const T* node) {
    if (node != nullptr) visit(NodeRef(node));
  }
  template <typename T>
  void All(List<T*> nodes) {
    for (const T* node : nodes) One(node);
  }

  void Visit(const Expr* node);
  void Visit(const Stmt* node);
  void Visit(const Pattern* node);

  void Comprehended(const Expr* elt, List<Comprehension*> generators) {
    One(elt);
    All(generators);
  }
  void Visit(const Arguments* node) {
    All(node->posonlyargs);
    All(node->args);
    One(node->vararg);
    All(node->kwonlyargs);
    All(node->kw_defaults);
    One(node->kwarg);
    All(node->defaults);
  }
  void Visit(const FunctionDef* node) {
    One(node->args);
    All(node->body);
    All(node->decorator_list);
    One(node->returns);
    All(node->type_params);
  }
  void Visit(const ClassDef* node) {
    All(node->bases);
    All(node->keywords);
    All(node->body);
    All(node->decorator_list);
    All(node->type_params);
  }
  void Visit(const Try* node) {
    All(node->body);
    All(node->handlers);
    All(node->orelse);
    All(node->finalbody);
  }
  void Visit(const For* node) {
    One(node->target);
    One(node->iter);
    All(node->body);
    All(node->orelse);
  }
  void Branch(const Expr* test, List<Stmt*> body, List<Stmt*> orelse) {
    One(test);
    All(body);
    All(orelse);
  }
  void Three(const Expr* first, const Expr* second, const Expr* third) {
    One(first);
    One(second);
    One(third);
  }
};

template <typename Visitor>
void ChildVisitor<Visitor>::Visit(const Expr* node) {
  switch (node->kind) {
    case ExprKind::kBoolOp:
      return All(As<BoolOp>(node)->values);
    case ExprKind::kNamedExpr: {
      const auto* named = As<NamedExpr>(node);
      return Three(named->target, named->value, nullptr);
    }
    case ExprKind::kBinOp:
      return Three(As<BinOp>(node)->left, As<BinOp>(node)->right, nullptr);
    case ExprKind::kUnaryOp:
      return One(As<UnaryOp>(node)->operand);
    case ExprKind::kLambda:
      One(As<Lambda>(node)->args);
      return One(As<Lambda>(node)->body);
    case ExprKind::kIfExp: {
      const auto* choice = As<IfExp>(node);
      return Three(choice->test, choice->body, choice->orelse);
    }
    case ExprKind::kDict:
      All(As<Dict>(node)->keys);
      return All(As<Dict>(node)->values);
    case ExprKind::kSet:
      return All(As<Set>(node)->elts);
    case ExprKind::kListComp:
      return Comprehended(As<ListComp>(node)->elt, As<ListComp>(node)->generators);
    case ExprKind::kSetComp:
      return Comprehended(As<SetComp>(node)->elt, As<SetComp>(node)->generators);
    case ExprKind::kDictComp:
      One(As<DictComp>(node)->key);
      return Comprehended(As<DictComp>(node)->value, As<DictComp>(node)->generators);
    case ExprKind::kGeneratorExp:
      return Comprehended(As<GeneratorExp>(node)->elt, As<GeneratorExp>(node)->generators);
    case ExprKind::kAwait:
      return One(As<Await>(node)->value);
    case ExprKind::kYield:
      return One(As<Yield>(node)->value);
    case ExprKind::kYieldFrom:
      return One(As<YieldFrom>(node)->value);
    case ExprKind::kCompare:
      One(As<Compare>(node)->left);
      return All(As<Compare>(node)->comparators);
    case ExprKind::kCall:
      One(As<Call>(node)->func);
      All(As<Call>(node)->args);
      return All(As<Call>(node)->keywords);
    case ExprKind::kFormattedValue: {
      const auto* field = As<FormattedValue>(node);
      return Three(field->value, field->format_spec, nullptr);
    }
    case ExprKind::kJoinedStr:
      return All(As<JoinedStr>(node)->values);
    case ExprKind::kAttribute:
      return One(As<Attribute>(node)->value);
    case ExprKind::kSubscript:
      return Three(As<Subscript>(node)->value, As<Subscript>(node)->slice, nullptr);
    case ExprKind::kStarred:
      return One(As<Starred>(node)->value);
    case ExprKind::kList:
      return All(As<ListExpr>(node)->elts);
    case ExprKind::kTuple:
      return All(As<Tuple>(node)->elts);
    case ExprKind::kSlice: {
      const auto* slice = As<Slice>(node);
      return Three(slice->lower, slice->upper, slice->step);
    }
    case ExprKind::kConstant:
    case ExprKind::kName:
      return;
  }
}

template <typename Visitor>
void ChildVisitor<Visitor>::Visit(const Stmt* node) {
  switch (node->kind) {
    case StmtKind::kFunctionDef:
    case StmtKind::kAsyncFunctionDef:
      return Visit(As<FunctionDef>(node));
    case StmtKind::kClassDef:
      return Visit(As<ClassDef>(node));
    case StmtKind::kReturn:
      return One(As<Return>(node)->value);
    case StmtKind::kDelete:
      return All(As<Delete>(node)->targets);
    case StmtKind::kAssign:
      All(As<Assign>(node)->targets);
      return One(As<Assign>(node)->value);
    case StmtKind::kTypeAlias:
      One(As<TypeAlias>(node)->name);
      All(As<TypeAlias>(node)->type_params);
      return One(As<TypeAlias>(node)->value);
    case StmtKind::kAugAssign:
      return Three(As<AugAssign>(node)->target, As<AugAssign>(node)->value, nullptr);
    case StmtKind::kAnnAssign: {
      const auto* assign = As<AnnAssign>(node);
      return Three(assign->target, assign->annotation, assign->value);
    }
    case StmtKind::kFor:
    case StmtKind::kAsyncFor:
      return Visit(As<For>(node));
    case StmtKind::kWhile: {
      const auto* loop = As<While>(node);
      return Branch(loop->test, loop->body, loop->orelse);
    }
    case StmtKind::kIf: {
      const auto* branch = As<If>(node);
      return Branch(branch->test, branch->body, branch->orelse);
    }
    case StmtKind::kWith:
    case StmtKind::kAsyncWith:
      All(As<With>(node)->items);
      return All(As<With>(node)->body);
    case StmtKind::kMatch:
      One(As<Match>(node)->subject);
      return All(As<Match>(node)->cases);
    case StmtKind::kRaise:
      return Three(As<Raise>(node)->exc, As<Raise>(node)->cause, nullptr);
    case StmtKind::kTry:
    case StmtKind::kTryStar:
      return Visit(As<Try>(node));
    case StmtKind::kAssert:
      return Three(As<Assert>(node)->test, As<Assert>(node)->msg, nullptr);
    case StmtKind::kImport:
      return All(As<Import>(node)->names);
    case StmtKind::kImportFrom:
      return All(As<ImportFrom>(node)->names);
    case StmtKind::kExpr:
      return One(As<ExprStmt>(node)->value);
    case StmtKind::kGlobal:
    case StmtKind::kNonlocal:
    case StmtKind::kPass:
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      return;
  }
}

template <typename Visitor>
void ChildVisitor<Visitor>::Visit(const Pattern* node) {
  switch (node->kind) {
    case PatternKind::kMatchValue:
      return One(As<MatchValue>(node)->value);
    case PatternKind::kMatchSequence:
      return All(As<MatchSequence>(node)->patterns);
    case PatternKind::kMatchMapping:
      All(As<MatchMapping>(node)->keys);
      return All(As<MatchMapping>(node)->patterns);
    case PatternKind::kMatchClass:
      One(As<MatchClass>(node)->cls);
      All(As<MatchClass>(node)->patterns);
      return All(As<MatchClass>(node)->kwd_patterns);
    case PatternKind::kMatchAs:
      return One(As<MatchAs>(node)->pattern);
    case PatternKind::kMatchOr:
      return All(As<MatchOr>(node)->patterns);
    case PatternKind::kMatchSingleton:
    case PatternKind::kMatchStar:
      return;
  }
}

}  // namespace internal

// Calls `visit(NodeRef)` for each direct child of `node`.
template <typename Visitor>
void ForEachChild(NodeRef node, Visitor&& visit) {
  internal::ChildVisitor<std::remove_reference_t<Visitor>> children{visit};
  switch (node.kind()) {
    case NodeRef::Kind::kModule:
      return children.All(node.module()->body);
    case NodeRef::Kind::kStmt:
      return children.Visit(node.stmt());
    case NodeRef::Kind::kExpr:
      return children.Visit(node.expr());
    case NodeRef::Kind::kPattern:
      return children.Visit(node.pattern());
    case NodeRef::Kind::kArguments:
      return children.Visit(node.arguments());
    case NodeRef::Kind::kArg:
      return children.One(node.arg()->annotation);
    case NodeRef::Kind::kKeyword:
      return children.One(node.keyword()->value);
    case NodeRef::Kind::kComprehension:
      children.One(node.comprehension()->target);
      children.One(node.comprehension()->iter);
      return children.All(node.comprehension()->ifs);
    case NodeRef::Kind::kAlias:
      return;
    case NodeRef::Kind::kWithItem:
      children.One(node.with_item()->context_expr);
      return children.One(node.with_item()->optional_vars);
    case NodeRef::Kind::kExceptHandler:
      children.One(node.except_handler()->type);
      return children.All(node.except_handler()->body);
    case NodeRef::Kind::kMatchCase:
      children.One(node.match_case()->pattern);
      children.One(node.match_case()->guard);
      return children.All(node.match_case()->body);
    case NodeRef::Kind::kTypeParam:
      return children.One(node.type_param()->bound);
  }
}

// Calls `visit(NodeRef)` for `root` and everything below it, breadth first. Does not recurse;
// takes memory in proportion to the number of nodes.
template <typename Visitor>
void WalkBreadthFirst(NodeRef root, Visitor&& visit) {
  std::vector<NodeRef> queue{root};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const NodeRef node = queue[next];
    ForEachChild(node, [&queue](NodeRef child) { queue.push_back(child); });
    visit(node);
  }
}

}  // namespace caisson::python
