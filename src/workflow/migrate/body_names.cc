// SPDX-License-Identifier: Apache-2.0
// Names from outside of a function: constants, helpers, modules.
#include "workflow/migrate/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"
#include "workflow/migrate/foreign.h"

namespace caisson::workflow::migrate {

using python::As;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

std::string BodyEdits::FieldName(std::string_view constant, const Facts& facts) {
  std::string_view bare = constant;
  while (bare.starts_with('_')) bare.remove_prefix(1);
  std::string name(bare);
  if (name.empty() || name == "name" || name == "run") name += "value";
  while (name != constant && facts.names.contains(name)) name += "_value";
  return name;
}

void BodyEdits::AddGlobals(NodeRef root, const NameSet& bound, Scope& scope) {
  for (const python::Name* name : FreeNames(root, bound)) {
    if (!scope.skipped.contains(name)) AddGlobal(*name, scope);
  }
}

void BodyEdits::AddGlobal(const python::Name& name, Scope& scope) {
  const Facts& facts = subject_.facts;
  if (subject_.wiring.graphs.contains(name.id) || subject_.wiring.compiled.contains(name.id)) {
    return Decide(errors::kMigrateConstruct, name.span, "a node uses a graph",
                  "add the graph as a node (a subgraph)");
  }
  if (const auto constant = facts.constants.find(name.id); constant != facts.constants.end()) {
    return AddConstant(name, constant->second, scope);
  }
  if (const auto function = facts.functions.find(name.id); function != facts.functions.end()) {
    return AddHelperUse(name, *function->second, scope);
  }
  if (facts.classes.contains(name.id)) {
    subject_.out.Keep(name.id);
    scope.decided.insert(&name);
    return Decide(errors::kMigrateConstruct, name.span,
                  fmt::format("a node uses the class '{}'", name.id),
                  "write what it holds as a dict, and what it does as functions");
  }
  if (facts.imports.contains(name.id)) AddImport(name, scope);
}

void BodyEdits::AddImport(const python::Name& name, Scope& scope) {
  const python::Expr* use = &name;
  while (const auto* attribute = IsA<python::Attribute>(subject_.facts.ParentExpr(use))) {
    if (attribute->value != use) break;
    use = attribute;
  }
  if (subject_.facts.IsLangGraph(use, "END")) return edits_.Replace(Of(*use), "\"__end__\"");
  if (subject_.facts.IsLangGraph(use, "START")) return edits_.Replace(Of(*use), "\"__start__\"");
  const std::string meaning = subject_.facts.ImportedAs(use);
  if (ReplaceImport(*use, meaning)) return;
  subject_.out.Keep(name.id);
  scope.decided.insert(&name);
  ForeignUse foreign = DescribeForeign(meaning);
  Decide(errors::kMigrateImport, use->span, std::move(foreign.message), std::move(foreign.hint));
}

bool BodyEdits::ReplaceImport(const python::Expr& use, const std::string& meaning) {
  static constexpr std::pair<std::string_view, std::string_view> kValues[] = {
      {"math.e", "2.718281828459045"},
      {"math.inf", "float(\"inf\")"},
      {"math.pi", "3.141592653589793"},
      {"math.tau", "6.283185307179586"}};
  for (const auto& [name, text] : kValues) {
    if (meaning == name) {
      edits_.Replace(Of(use), std::string(text));
      return true;
    }
  }
  const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(&use));
  if (call == nullptr || call->func != &use || call->args.size() != 1) return false;
  const Range whole = Of(*call), argument = Of(*call->args[0]);
  const auto wrap = [&](std::string before, std::string after) {
    edits_.Replace({whole.begin, argument.begin}, std::move(before));
    edits_.Replace({argument.end, whole.end}, std::move(after));
    return true;
  };
  if (call->args[0]->kind == ExprKind::kStarred || call->args[0]->kind == ExprKind::kGeneratorExp)
    return false;
  if (meaning == "json.dumps" && call->keywords.size() == 1 &&
      call->keywords[0]->arg == "sort_keys") {
    const auto* sorted = IsA<python::Constant>(call->keywords[0]->value);
    if (sorted == nullptr || sorted->constant != python::ConstantKind::kTrue) return false;
    return wrap(Use(Support::kJsonText) + "(", ")");
  }
  if (!call->keywords.empty()) return false;
  if (meaning == "math.floor") return wrap("int((", ") // 1)");
  if (meaning == "math.ceil") return wrap("(-int(-(", ") // 1))");
  if (meaning == "math.trunc") return wrap("int(", ")");
  return meaning == "math.fabs" && wrap("abs(float(", "))");
}

void BodyEdits::AddConstant(const python::Name& name, const Constant& constant, Scope& scope) {
  if (constant.changed || constant.kind == Constant::Kind::kForeign) subject_.out.Keep(name.id);
  if (constant.changed) {
    scope.decided.insert(&name);
    return Decide(
        errors::kMigrateModuleState, name.span,
        fmt::format("'{}' is changed while the workflow runs: it would outlive the run", name.id),
        "keep it in what the nodes return, or in a store");
  }
  if (constant.kind == Constant::Kind::kForeign) {
    scope.decided.insert(&name);
    const auto* root = RootName(constant.value);
    if (root != nullptr) subject_.out.Keep(root->id);
    const auto* made = IsA<python::Call>(constant.value);
    const python::Expr* what = made != nullptr ? made->func : constant.value;
    const std::string meaning = root != nullptr ? subject_.facts.ImportedAs(what) : std::string();
    const ForeignUse foreign =
        meaning.empty()
            ? ForeignUse{fmt::format("'{}' is no value that can be written out", name.id),
                         "write its value as a literal"}
            : DescribeForeign(meaning);
    Decide(errors::kMigrateImport, name.span, foreign.message, foreign.hint);
    return Decide(errors::kMigrateImport, constant.value->span, foreign.message, foreign.hint);
  }
  if (constant.kind == Constant::Kind::kLocal) {
    locals_.insert(name.id);
    if (GivesDict(constant.value)) CheckOrder(name);
    return;
  }
  fields_.insert(name.id);
  const std::string field = FieldName(name.id, subject_.facts);
  if (constant.value->kind == ExprKind::kDict) return AddOrdered(name, name.id, field);
  edits_.Replace(Of(name), "self." + field);
}

// A constant dict that is gone over gets a list of its keys beside it.
void BodyEdits::AddOrdered(const python::Name& name, std::string_view constant,
                           const std::string& field) {
  const Facts& facts = subject_.facts;
  const auto* method = IsA<python::Attribute>(facts.ParentExpr(&name));
  const auto* call = method == nullptr ? nullptr : IsA<python::Call>(facts.ParentExpr(method));
  const bool called = call != nullptr && call->func == method && call->args.empty();
  const std::string self = "self." + field, keys = self + "_ORDER";
  if (called && (method->attr == "items" || method->attr == "keys" || method->attr == "values")) {
    if (OrderOf(call, facts) == Order::kHidden) return edits_.Replace(Of(name), self);
    ordered_.insert(constant);
    if (method->attr == "keys") return edits_.Replace(Of(*call), keys);
    const std::string what =
        method->attr == "items" ? fmt::format("(key, {}[key])", self) : self + "[key]";
    return edits_.Replace(Of(*call), fmt::format("[{} for key in {}]", what, keys));
  }
  const auto parent = facts.parents.find(&name);
  const bool subscript =
      method == nullptr && IsA<python::Subscript>(facts.ParentExpr(&name)) != nullptr;
  const auto* outer = IsA<python::Call>(facts.ParentExpr(&name));
  const auto* loop =
      parent == facts.parents.end() ? nullptr : IsA<python::For>(parent->second.stmt());
  const bool in_comprehension = parent != facts.parents.end() &&
                                parent->second.comprehension() != nullptr &&
                                parent->second.comprehension()->iter == &name;
  const bool goes_over = (loop != nullptr && loop->iter == &name) || in_comprehension ||
                         (outer != nullptr && (DottedName(outer->func) == "list" ||
                                               DottedName(outer->func) == "enumerate" ||
                                               DottedName(outer->func) == "tuple"));
  if (subscript || !goes_over || OrderOf(&name, facts) == Order::kHidden) {
    edits_.Replace(Of(name), self);
    if (!subscript && !goes_over) CheckOrder(name);
    return;
  }
  ordered_.insert(constant);
  edits_.Replace(Of(name), keys);
}

void BodyEdits::AddHelperUse(const python::Name& name, const python::FunctionDef& helper,
                             Scope& scope) {
  if (subject_.wiring.builder == &helper || subject_.wiring.other_builders.contains(&helper)) {
    return Decide(errors::kMigrateConstruct, name.span, "a node builds a graph",
                  "add the graph as a node (a subgraph)");
  }
  std::optional<std::string_view> state;
  const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(&name));
  if (call != nullptr && call->func == &name && !scope.state.empty()) {
    const auto is_state = [&](const python::Expr* value) {
      const auto* argument = IsA<python::Name>(value);
      return argument != nullptr && argument->id == scope.state;
    };
    for (std::size_t i = 0; i < call->args.size() && i < helper.args->args.size(); ++i) {
      if (is_state(call->args[i])) state = helper.args->args[i]->arg;
    }
    for (const python::Keyword* keyword : call->keywords) {
      if (is_state(keyword->value)) state = keyword->arg;
    }
  }
  const auto [found, added] = helpers_.emplace(&helper, state);
  if (added) waiting_.push_back(&helper);
  if (!added && found->second != state && subject_.fields.own()) {
    Decide(
        errors::kMigrateState, name.span,
        fmt::format("'{}' gets the state in one place and something else in another", helper.name),
        "give it what it needs of the state, instead of the state");
  }
}

// x = requests.get(...), then x.raise_for_status(): part of the same decision.
void BodyEdits::DecideLateUses(NodeRef root, Scope& scope) {
  const auto holds_decided = [&](const python::Expr* value) {
    bool found = false;
    if (value == nullptr) return false;
    python::WalkBreadthFirst(value, [&](NodeRef node) {
      found |= node.expr() != nullptr && decided_.contains(node.expr());
    });
    return found;
  };
  const auto mark = [&](const python::Expr* target, const python::Expr* value) {
    const auto* name = IsA<python::Name>(target);
    if (name != nullptr && holds_decided(value)) late_.insert(name->id);
  };
  python::WalkBreadthFirst(root, [&](NodeRef node) {
    if (const auto* assign = IsA<python::Assign>(node.stmt())) {
      for (const python::Expr* target : assign->targets) mark(target, assign->value);
    }
    if (node.with_item() != nullptr)
      mark(node.with_item()->optional_vars, node.with_item()->context_expr);
    const auto* statement = IsA<python::ExprStmt>(node.stmt());
    if (statement == nullptr || scope.skipped.contains(statement->value)) return;
    const auto* name = RootName(statement->value);
    if (name == nullptr || !late_.contains(name->id)) return;
    Decide(errors::kMigrateConstruct, statement->span,
           fmt::format("this depends on what becomes of '{}'", name->id),
           "decide on both together");
  });
}

}  // namespace caisson::workflow::migrate
