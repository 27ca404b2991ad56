// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "errors/migrate.h"
#include "workflow/literal.h"
#include "workflow/registry.h"

namespace caisson::workflow::migrate {
namespace {

using python::As;
using python::IsA;
using python::NodeRef;

bool IsNewGraph(const python::Expr* expr) {
  const auto* call = IsA<python::Call>(expr);
  if (call == nullptr) return false;
  const std::string name = DottedName(call->func);
  return name == "StateGraph" || name.ends_with(".StateGraph") || name == "MessageGraph";
}

// NAME = value, also annotated.
std::pair<const python::Name*, const python::Expr*> Assignment(const python::Stmt* statement) {
  if (const auto* assign = IsA<python::Assign>(statement)) {
    if (assign->targets.size() != 1) return {};
    return {IsA<python::Name>(assign->targets[0]), assign->value};
  }
  if (const auto* annotated = IsA<python::AnnAssign>(statement)) {
    return {IsA<python::Name>(annotated->target), annotated->value};
  }
  return {};
}

// name.method(...)
struct MethodCall {
  const python::Call* call = nullptr;
  std::string_view target, method;
};
MethodCall MethodOf(const python::Expr* expr) {
  const auto* call = IsA<python::Call>(expr);
  if (call == nullptr) return {};
  const auto* attribute = IsA<python::Attribute>(call->func);
  if (attribute == nullptr) return {};
  const auto* name = IsA<python::Name>(attribute->value);
  if (name == nullptr) return {};
  return {call, name->id, attribute->attr};
}

bool HoldsNewGraph(const python::FunctionDef& function) {
  bool found = false;
  python::WalkBreadthFirst(&function, [&found](NodeRef node) {
    found |= node.expr() != nullptr && IsNewGraph(node.expr());
  });
  return found;
}

class Reader {
 public:
  Reader(const python::Module& module, const Facts& facts, Findings& out)
      : module_(module), facts_(facts), out_(out) {}

  Wiring Read() {
    ChooseBuilder();
    if (wiring_.builder != nullptr) {
      for (const python::Stmt* statement : wiring_.builder->body)
        ReadStatement(statement, statement, {});
    } else {
      for (const python::Stmt* statement : module_.body) ReadModuleStatement(statement);
    }
    ChooseMain();
    ReadCalls();
    return std::move(wiring_);
  }

 private:
  void Decide(const SourceSpan& span, std::string message, std::string hint) {
    out_.Decide(errors::kMigrateGraph, span, std::move(message), std::move(hint));
  }

  void ChooseBuilder() {
    std::vector<const python::FunctionDef*> builders;
    bool at_module_level = false;
    for (const python::Stmt* statement : module_.body) {
      if (const auto* function = FunctionOf(statement);
          function != nullptr && HoldsNewGraph(*function)) {
        builders.push_back(function);
      }
      at_module_level |= IsNewGraph(Assignment(statement).second);
    }
    const python::FunctionDef* named = Named(builders);
    if (named == nullptr && builders.size() == 1 && !at_module_level) named = builders.front();
    if (named == nullptr && builders.size() > 1 && !at_module_level) {
      for (const auto* each : builders) {
        Decide(each->span,
               fmt::format("'{}' is one of several functions that build a graph", each->name),
               "call the one that is to run orcheo_workflow");
      }
    }
    wiring_.builder = named;
    for (const auto* each : builders) {
      if (each != named) wiring_.other_builders.insert(each);
    }
  }

  const python::FunctionDef* Named(const std::vector<const python::FunctionDef*>& builders) const {
    std::string_view name = "orcheo_workflow";
    const auto alias = facts_.constants.find(name);
    if (alias != facts_.constants.end()) {
      if (const auto* target = IsA<python::Name>(alias->second.value)) name = target->id;
    }
    const auto found = std::ranges::find(builders, name, &python::FunctionDef::name);
    return found == builders.end() ? nullptr : *found;
  }

  void ReadModuleStatement(const python::Stmt* statement) {
    if (!BelongsToBuilder(statement)) return;
    wiring_.statements.insert(statement);
    ReadStatement(statement, statement, {});
  }

  bool BelongsToBuilder(const python::Stmt* statement) {
    const auto [name, value] = Assignment(statement);
    if (name != nullptr && value != nullptr) {
      const MethodCall call = MethodOf(value);
      return IsNewGraph(value) || (wiring_.graphs.contains(call.target)) ||
             (IsNodeCall(value, facts_) && wiring_.graphs.size() > 0);
    }
    if (const auto* loop = IsA<python::For>(statement)) {
      return std::ranges::any_of(
          loop->body, [this](const python::Stmt* each) { return BelongsToBuilder(each); });
    }
    const auto* expression = IsA<python::ExprStmt>(statement);
    if (expression == nullptr) return false;
    const auto* root = RootName(expression->value);
    return root != nullptr && wiring_.graphs.contains(root->id);
  }

  void ReadStatement(const python::Stmt* statement, const python::Stmt* outermost,
                     const Turn& turn) {
    if (wiring_.steps.size() >= kMaxSteps) {
      return Decide(outermost->span, "the builder's loops give too many statements",
                    "write the graph without loops");
    }
    if (const auto* loop = IsA<python::For>(statement)) return Unroll(*loop, outermost, turn);
    if (const auto* returned = IsA<python::Return>(statement)) return ReadReturn(*returned);
    if (const auto* expression = IsA<python::ExprStmt>(statement)) {
      return ReadExpression(*expression, outermost, turn);
    }
    const auto [name, value] = Assignment(statement);
    if (name != nullptr && value != nullptr &&
        ReadAssignment(*name, value, statement, outermost, turn))
      return;
    if (statement->kind == python::StmtKind::kPass) return;
    Decide(statement->span, "a builder may only make, wire and return graphs",
           "write the graph out, statement by statement");
  }

  bool ReadAssignment(const python::Name& name, const python::Expr* value,
                      const python::Stmt* statement, const python::Stmt* outermost,
                      const Turn& turn) {
    Step step{Step::Kind::kNewGraph,    statement, outermost, std::string(name.id),
              IsA<python::Call>(value), {},        turn};
    if (IsNewGraph(value)) {
      wiring_.graphs[step.graph];
      if (!step.call->keywords.empty() || step.call->args.size() > 1) {
        Decide(value->span, "a graph with a schema of its own for inputs, output or context",
               "keep one state; leave the further arguments out");
      }
    } else if (const MethodCall call = MethodOf(value);
               call.method == "compile" && wiring_.graphs.contains(call.target)) {
      step.kind = Step::Kind::kAlias;
      wiring_.compiled[step.graph] = call.target;
      CheckCompile(*call.call);
    } else if (IsNodeCall(value, facts_)) {
      step.kind = Step::Kind::kNodeVariable;
    } else {
      return false;
    }
    wiring_.steps.push_back(std::move(step));
    return true;
  }

  void ReadExpression(const python::ExprStmt& statement, const python::Stmt* outermost,
                      const Turn& turn) {
    if (StringLiteral(*statement.value)) {
      wiring_.steps.push_back({Step::Kind::kProse, &statement, outermost, {}, nullptr, {}, turn});
      return;
    }
    const MethodCall call = MethodOf(statement.value);
    if (call.call == nullptr || !wiring_.graphs.contains(call.target)) {
      return Decide(statement.span, "a builder may only call methods of its graphs",
                    "write the graph out, statement by statement");
    }
    wiring_.steps.push_back({Step::Kind::kCall, &statement, outermost, std::string(call.target),
                             call.call, call.method, turn});
  }

  void ReadReturn(const python::Return& returned) {
    const python::Expr* value = returned.value;
    if (const MethodCall call = MethodOf(value); call.call != nullptr) {
      if (call.method == "compile") CheckCompile(*call.call);
      wiring_.main = call.target;
    } else if (const auto* name = IsA<python::Name>(value)) {
      const auto alias = wiring_.compiled.find(name->id);
      wiring_.main = alias == wiring_.compiled.end() ? std::string(name->id) : alias->second;
    }
    if (!wiring_.graphs.contains(wiring_.main)) {
      Decide(returned.span, "the builder returns something else than a graph of its own",
             "build the graph in this function and return it");
    }
  }

  void CheckCompile(const python::Call& call) {
    for (const python::Keyword* keyword : call.keywords) {
      Decide(keyword->span,
             fmt::format(
                 "compile({}=...) has no counterpart: the engine that runs the workflow decides",
                 keyword->arg),
             "leave it out, if what it did is no longer needed");
    }
    for (const python::Expr* argument : call.args) {
      Decide(argument->span, "compile(...) takes no arguments here", "leave it out");
    }
  }

  void Unroll(const python::For& loop, const python::Stmt* outermost, const Turn& turn) {
    const std::optional<std::vector<const python::Expr*>> items = Items(loop.iter);
    if (!items || !loop.orelse.empty()) {
      return Decide(loop.span, "a loop over something that is not written out",
                    "write the list into the loop, or the graph out");
    }
    for (const python::Expr* item : *items) {
      Turn inner = turn;
      if (!Bind(loop.target, Resolve(item, turn), inner)) {
        return Decide(loop.target->span, "the loop's names do not fit what it goes over",
                      "write the graph out");
      }
      for (const python::Stmt* statement : loop.body) ReadStatement(statement, outermost, inner);
    }
  }

  std::optional<std::vector<const python::Expr*>> Items(const python::Expr* expr) const {
    if (const auto* name = IsA<python::Name>(expr)) {
      const auto constant = facts_.constants.find(name->id);
      if (constant == facts_.constants.end() || constant->second.changed) return std::nullopt;
      expr = constant->second.value;
    }
    if (const auto* tuple = IsA<python::Tuple>(expr))
      return std::vector<const python::Expr*>(tuple->elts.begin(), tuple->elts.end());
    if (const auto* list = IsA<python::ListExpr>(expr))
      return std::vector<const python::Expr*>(list->elts.begin(), list->elts.end());
    return std::nullopt;
  }

  static bool Bind(const python::Expr* target, const python::Expr* item, Turn& turn) {
    if (const auto* name = IsA<python::Name>(target)) {
      turn[name->id] = item;
      return true;
    }
    const auto* names = IsA<python::Tuple>(target);
    const auto* items = IsA<python::Tuple>(item);
    if (names == nullptr || items == nullptr || names->elts.size() != items->elts.size())
      return false;
    for (std::size_t i = 0; i < names->elts.size(); ++i) {
      if (!Bind(names->elts[i], items->elts[i], turn)) return false;
    }
    return true;
  }

  void ChooseMain() {
    if (!wiring_.main.empty() || wiring_.builder != nullptr) return;
    std::set<std::string> inner;
    for (const Step& step : wiring_.steps) {
      if (step.kind != Step::Kind::kCall || step.method != "add_node") continue;
      for (const python::Expr* argument : step.call->args) inner.insert(GraphOf(argument));
    }
    std::vector<std::string> outer;
    for (const auto& [name, graph] : wiring_.graphs) {
      if (!inner.contains(name)) outer.push_back(name);
    }
    if (outer.size() == 1) wiring_.main = outer.front();
    for (const char* usual : {"app", "graph", "orcheo_workflow"}) {
      const auto alias = wiring_.compiled.find(usual);
      if (outer.size() > 1 && alias != wiring_.compiled.end()) wiring_.main = alias->second;
    }
    if (wiring_.main.empty() && !out_.decisions_left()) {
      Decide({},
             wiring_.graphs.empty() ? "the file builds no graph (StateGraph)"
                                    : "the file builds several graphs, and none is named to be run",
             "write a function orcheo_workflow() that builds and returns the graph to run");
    }
  }

  // The graph that `expr` means, compiled or not; empty when it means none.
  std::string GraphOf(const python::Expr* expr) const {
    if (const MethodCall call = MethodOf(expr);
        call.method == "compile" && wiring_.graphs.contains(call.target)) {
      return std::string(call.target);
    }
    const auto* name = IsA<python::Name>(expr);
    if (name == nullptr) return {};
    if (wiring_.graphs.contains(name->id)) return std::string(name->id);
    const auto alias = wiring_.compiled.find(name->id);
    return alias == wiring_.compiled.end() ? std::string() : alias->second;
  }

  void ReadCalls() {
    for (const Step& step : wiring_.steps) {
      if (step.kind == Step::Kind::kCall) ReadCall(step);
    }
  }

  void ReadCall(const Step& step) {
    GraphModel& graph = wiring_.graphs[step.graph];
    const auto arguments = step.call->args;
    if (step.method == "add_node") return ReadNode(step, graph);
    if (step.method == "add_conditional_edges" || step.method == "set_conditional_entry_point") {
      return ReadBranch(step, graph);
    }
    if (step.method == "add_edge" && arguments.size() == 2 && step.call->keywords.empty())
      return ReadEdge(step, graph);
    if ((step.method == "set_entry_point" || step.method == "set_finish_point") &&
        arguments.size() == 1) {
      const auto id = Text(arguments[0], step);
      if (!id) return;
      const bool entry = step.method == "set_entry_point";
      graph.edges.emplace_back(entry ? std::string(kStart) : *id, entry ? *id : std::string(kEnd));
      return;
    }
    Decide(
        step.call->span,
        fmt::format("'{}' has no counterpart in the restricted grammar in this form", step.method),
        "use add_node, add_edge(source, target), add_conditional_edges, set_entry_point or "
        "set_finish_point");
  }

  std::optional<std::string> Text(const python::Expr* expr, const Step& step) {
    auto text = TextOf(expr, step.turn, facts_);
    if (!text) Decide(expr->span, "the id of a node is computed", "write the id as a literal");
    return text;
  }

  void ReadNode(const Step& step, GraphModel& graph) {
    const auto arguments = step.call->args;
    for (const python::Keyword* keyword : step.call->keywords) {
      Decide(keyword->span, fmt::format("add_node({}=...) has no counterpart", keyword->arg),
             "leave it out, if what it did is no longer needed");
    }
    if (arguments.empty() || arguments.size() > 2) return;
    const python::Expr* what = Resolve(arguments.back(), step.turn);
    Node node;
    if (const auto* name = IsA<python::Name>(what)) {
      const auto found = facts_.functions.find(name->id);
      if (found != facts_.functions.end()) node.function = found->second;
    }
    node.lambda = IsA<python::Lambda>(what);
    node.subgraph = GraphOf(what);
    if (arguments.size() == 2) {
      const auto id = Text(arguments[0], step);
      if (!id) return;
      node.id = *id;
    } else if (node.function != nullptr) {
      node.id = node.function->name;
    } else if (!IsNodeCall(what, facts_)) {
      return Decide(what->span, "a node without an id", "give the id as the first argument");
    } else {
      node.id = NameArgument(*As<python::Call>(what));
    }
    const bool known = node.function != nullptr || node.lambda != nullptr ||
                       !node.subgraph.empty() || IsNodeCall(what, facts_) || IsNodeVariable(what);
    if (!known) {
      if (const auto* root = RootName(what)) out_.Keep(root->id);
      Decide(what->span,
             fmt::format("node '{}' is neither a function nor a node of Orcheo's", node.id),
             "write it as a function of the state, or use a built-in node");
    }
    graph.nodes.push_back(std::move(node));
  }

  static std::string NameArgument(const python::Call& call) {
    for (const python::Keyword* keyword : call.keywords) {
      if (keyword->arg == "name") return std::string(StringLiteral(*keyword->value).value_or(""));
    }
    return {};
  }

  bool IsNodeVariable(const python::Expr* expr) const {
    const auto* name = IsA<python::Name>(expr);
    return name != nullptr && std::ranges::any_of(wiring_.steps, [&](const Step& step) {
             return step.kind == Step::Kind::kNodeVariable && step.graph == name->id;
           });
  }

  void ReadEdge(const Step& step, GraphModel& graph) {
    const python::Expr* source = Resolve(step.call->args[0], step.turn);
    const auto target = Text(step.call->args[1], step);
    if (!target) return;
    const auto* list = IsA<python::ListExpr>(source);
    if (list == nullptr) {
      if (const auto id = Text(source, step)) graph.edges.emplace_back(*id, *target);
      return;
    }
    for (const python::Expr* each : list->elts) {
      if (const auto id = Text(each, step)) graph.edges.emplace_back(*id, *target);
    }
  }

  void ReadBranch(const Step& step, GraphModel& graph) {
    auto arguments =
        std::vector<const python::Expr*>(step.call->args.begin(), step.call->args.end());
    Branch branch;
    branch.call = step.call;
    branch.source = kStart;
    if (step.method == "add_conditional_edges") {
      if (arguments.empty()) return;
      const auto source = Text(arguments.front(), step);
      if (!source) return;
      branch.source = *source;
      arguments.erase(arguments.begin());
    }
    for (const python::Keyword* keyword : step.call->keywords) {
      if (keyword->arg == "path" || keyword->arg == "path_map") {
        arguments.push_back(keyword->value);
      } else {
        Decide(keyword->span,
               fmt::format("add_conditional_edges({}=...) has no counterpart", keyword->arg),
               "leave it out");
      }
    }
    if (arguments.empty()) return;
    if (arguments.front()->kind == python::ExprKind::kDict) {
      return ReadRestrictedBranch(step, std::move(branch), *As<python::Dict>(arguments.front()),
                                  graph);
    }
    branch.router = Resolve(arguments.front(), step.turn);
    branch.lambda = IsA<python::Lambda>(branch.router);
    if (const auto* name = IsA<python::Name>(branch.router)) {
      const auto found = facts_.functions.find(name->id);
      if (found != facts_.functions.end()) branch.function = found->second;
    }
    if (branch.function == nullptr && branch.lambda == nullptr) {
      if (const auto* root = RootName(branch.router)) out_.Keep(root->id);
      Decide(branch.router->span, "the router is not a function of this file",
             "write a function of the state that says where to go");
    }
    if (arguments.size() > 1) ReadMapping(step, Resolve(arguments[1], step.turn), branch);
    graph.branches.push_back(std::move(branch));
  }

  // {path, mapping, default}: as it is to be.
  void ReadRestrictedBranch(const Step& step, Branch branch, const python::Dict& dict,
                            GraphModel& graph) {
    for (std::size_t i = 0; i < dict.keys.size(); ++i) {
      if (dict.keys[i] == nullptr) continue;
      const auto key = StringLiteral(*dict.keys[i]);
      const auto* mapping = IsA<python::Dict>(dict.values[i]);
      if (key == "default") {
        if (const auto target = TextOf(dict.values[i], step.turn, facts_))
          branch.mapping.emplace_back("", *target);
      }
      if (key != "mapping" || mapping == nullptr) continue;
      for (const python::Expr* value : mapping->values) {
        if (const auto target = TextOf(value, step.turn, facts_))
          branch.mapping.emplace_back("", *target);
      }
    }
    branch.call = nullptr;
    graph.branches.push_back(std::move(branch));
  }

  void ReadMapping(const Step& step, const python::Expr* expr, Branch& branch) {
    if (const auto* list = IsA<python::ListExpr>(expr)) {
      for (const python::Expr* each : list->elts) {
        if (const auto id = Text(each, step)) branch.mapping.emplace_back(*id, *id);
      }
      return;
    }
    const auto* dict = IsA<python::Dict>(expr);
    if (dict == nullptr)
      return Decide(expr->span, "the mapping is not written out", "write it as a dict");
    for (std::size_t i = 0; i < dict->keys.size(); ++i) {
      const auto key = dict->keys[i] == nullptr ? std::nullopt : KeyText(dict->keys[i], step);
      if (!key) {
        Decide(dict->values[i]->span, "a key of the mapping is not a literal",
               "write the keys as texts");
        continue;
      }
      if (const auto id = Text(dict->values[i], step)) branch.mapping.emplace_back(*key, *id);
    }
  }

  // A key as the engine writes the value that it stands for.
  std::optional<std::string> KeyText(const python::Expr* expr, const Step& step) const {
    const auto* constant = IsA<python::Constant>(expr);
    if (constant == nullptr) return TextOf(expr, step.turn, facts_);
    switch (constant->constant) {
      case python::ConstantKind::kTrue:
        return "true";
      case python::ConstantKind::kFalse:
        return "false";
      case python::ConstantKind::kNone:
        return "null";
      case python::ConstantKind::kInt:
        return std::to_string(constant->integer);
      default:
        return TextOf(expr, step.turn, facts_);
    }
  }

  const python::Module& module_;
  const Facts& facts_;
  Findings& out_;
  Wiring wiring_;
};

}  // namespace

const python::Expr* Resolve(const python::Expr* expr, const Turn& turn) {
  const auto* name = IsA<python::Name>(expr);
  if (name == nullptr) return expr;
  const auto found = turn.find(name->id);
  return found == turn.end() ? expr : found->second;
}

std::optional<std::string> TextOf(const python::Expr* expr, const Turn& turn, const Facts& facts) {
  expr = Resolve(expr, turn);
  if (const auto text = StringLiteral(*expr)) return std::string(*text);
  if (facts.IsLangGraph(expr, "START")) return std::string(kStart);
  if (facts.IsLangGraph(expr, "END")) return std::string(kEnd);
  if (const auto* attribute = IsA<python::Attribute>(expr)) {
    const auto* name = IsA<python::Name>(Resolve(attribute->value, turn));
    const bool function = name != nullptr && facts.functions.contains(name->id);
    return function && attribute->attr == "__name__" ? std::optional(std::string(name->id))
                                                     : std::nullopt;
  }
  const auto* name = IsA<python::Name>(expr);
  if (name == nullptr) return std::nullopt;
  if (const auto found = facts.constants.find(name->id); found != facts.constants.end()) {
    const auto text = found->second.changed ? std::nullopt : StringLiteral(*found->second.value);
    return text ? std::optional(std::string(*text)) : std::nullopt;
  }
  // The restricted grammar knows these by their names alone.
  if (name->id == "START") return std::string(kStart);
  if (name->id == "END") return std::string(kEnd);
  return std::nullopt;
}

bool IsNodeCall(const python::Expr* expr, const Facts& facts) {
  const auto* call = IsA<python::Call>(expr);
  if (call == nullptr) return false;
  const auto* name = IsA<python::Name>(call->func);
  if (name == nullptr) return false;
  const auto own = facts.classes.find(name->id);
  if (own != facts.classes.end()) {
    const auto bases = own->second->bases;
    return bases.size() == 1 && DottedName(bases[0]) == "CodeNode";
  }
  return FindNodeType(name->id) != nullptr;
}

Wiring ReadWiring(const python::Module& module, const Facts& facts, Findings& out) {
  return Reader(module, facts, out).Read();
}

}  // namespace caisson::workflow::migrate
