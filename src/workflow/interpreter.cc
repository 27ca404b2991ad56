// SPDX-License-Identifier: Apache-2.0
#include "workflow/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/workflow.h"
#include "python/walk.h"
#include "workflow/report.h"
#include "workflow/resolve.h"

namespace caisson::workflow {
namespace {

using python::IsA;

bool IsNone(const python::Expr& expr) {
  const auto* constant = IsA<python::Constant>(&expr);
  return constant != nullptr && constant->constant == python::ConstantKind::kNone;
}

}  // namespace

std::shared_ptr<FinishedGraph> Interpreter::Run(const python::FunctionDef& builder) {
  GraphDraft* root = Interpret(builder);
  return root == nullptr ? nullptr : Resolve(*root, session_);
}

GraphDraft* Interpreter::Interpret(const python::FunctionDef& builder) {
  for (const python::Stmt* statement : builder.body) {
    if (session_.too_large) return nullptr;
    if (session_.grammar.Refused(statement)) {
      if (statement->kind == python::StmtKind::kReturn) return nullptr;
      NoteRefused(*statement);
    } else if (const auto* assign = IsA<python::Assign>(statement)) {
      Assign(*assign);
    } else if (const auto* ret = IsA<python::Return>(statement)) {
      return Returned(builder, *ret);
    } else if (const auto* expression = IsA<python::ExprStmt>(statement)) {
      if (const auto* call = IsA<python::Call>(expression->value)) CallMethod(*call);
    }
  }
  // A refused compound statement may hold the return.
  const bool may_return = std::ranges::any_of(builder.body, [this](const python::Stmt* statement) {
    return session_.grammar.Refused(statement);
  });
  if (!may_return) {
    AddError(out(), errors::kWorkflowBuilderForm, HeadSpan(builder),
             fmt::format("graph builder '{}' must return the assembled graph", builder.name),
             "end it with `return graph`");
  }
  return nullptr;
}

GraphDraft* Interpreter::Returned(const python::FunctionDef& builder,
                                  const python::Return& statement) {
  const python::Expr* named = statement.value;
  if (const auto* call = IsA<python::Call>(named)) {
    named = python::As<python::Attribute>(call->func)->value;
    if (!call->args.empty() || !call->keywords.empty()) {
      AddWarning(out(), errors::kWorkflowIgnoredArgument, call->span,
                 "the arguments of compile() have no effect here",
                 "remove them; runs are configured where they are started");
    }
  }
  const std::string_view name = BareName(named);
  if (const auto graph = graphs_.find(name); graph != graphs_.end()) return &graph->second;
  if (!poisoned_.contains(name)) {
    AddError(out(), errors::kWorkflowGraphVariable, named->span,
             fmt::format("returned graph '{}' was not assigned from StateGraph(...)", name),
             fmt::format("assign it first: `{} = StateGraph(State)`", name))
        .peer_line = builder.span.line;
  }
  return nullptr;
}

void Interpreter::Assign(const python::Assign& assign) {
  const std::string_view name = BareName(assign.targets[0]);
  const auto* call = python::As<python::Call>(assign.value);
  if (BareName(call->func) != "StateGraph") {
    nodes_[name] = call;
    return;
  }
  const auto [graph, is_new] = graphs_.try_emplace(name);
  if (!is_new) {
    AddError(out(), errors::kWorkflowGraphVariable, assign.span,
             fmt::format("graph variable '{}' is assigned more than once", name),
             fmt::format("it was assigned on line {}; choose another name for the second graph",
                         graph->second.span.line));
    return;
  }
  graph->second.name = name;
  graph->second.span = assign.span;
}

// ---- refused statements: what they would have made is missing, and that is no second error
// -------

void Interpreter::NoteRefused(const python::Stmt& statement) {
  if (const auto* expression = IsA<python::ExprStmt>(&statement)) {
    if (const auto* call = IsA<python::Call>(expression->value)) {
      const python::Attribute* method = MethodOfName(call->func);
      const auto graph =
          graphs_.find(method == nullptr ? std::string_view{} : BareName(method->value));
      if (graph != graphs_.end()) return NoteRefusedCall(*call, graph->second);
    }
  }
  python::WalkBreadthFirst(&statement, [this](python::NodeRef node) {
    const auto* name = IsA<python::Name>(node.expr());
    if (name == nullptr) return;
    if (name->ctx == python::ExprContext::kStore) poisoned_.insert(name->id);
    if (const auto graph = graphs_.find(name->id); graph != graphs_.end()) {
      graph->second.nodes_missing = graph->second.edges_missing = true;
    }
  });
}

void Interpreter::NoteRefusedCall(const python::Call& call, GraphDraft& graph) {
  const std::string_view method = python::As<python::Attribute>(call.func)->attr;
  if (method != "add_node") {
    graph.edges_missing = true;
    return;
  }
  const std::optional<std::string_view> id =
      call.args.size() == 2 ? StringLiteral(*call.args[0]) : std::nullopt;
  if (!id) {
    graph.nodes_missing = true;
  } else if (graph.ids.try_emplace(*id, call.span).second) {
    graph.nodes.push_back(
        {.node = BuiltinNode{std::string(*id), "NoOpTaskNode", {}}, .span = call.span});
  }
}

// ---- method calls
// --------------------------------------------------------------------------------

void Interpreter::CallMethod(const python::Call& call) {
  const auto* method = python::As<python::Attribute>(call.func);
  const std::string_view variable = BareName(method->value);
  const auto found = graphs_.find(variable);
  if (found == graphs_.end()) {
    if (poisoned_.contains(variable)) return;
    AddError(out(), errors::kWorkflowGraphVariable, method->value->span,
             fmt::format("method '{}' targets '{}', which is not a StateGraph variable",
                         method->attr, variable),
             fmt::format("assign it first: `{} = StateGraph(State)`", variable))
        .peer_line = call.span.line;
    return;
  }
  GraphDraft& graph = found->second;
  if (method->attr == "add_node") return AddNode(call, graph);
  if (method->attr == "add_edge") return AddEdge(call, graph);
  if (method->attr == "add_conditional_edges") return AddConditionalEdges(call, graph);
  if (method->attr == "set_entry_point") return SetEntryPoint(call, graph);
  SetFinishPoint(call, graph);
}

void Interpreter::AddEdge(const python::Call& call, GraphDraft& graph) {
  if (call.args.size() != 2) {
    AddError(out(), errors::kWorkflowEdgeForm, call.span,
             "add_edge expects exactly (source, target)", "write one add_edge for each edge");
    graph.edges_missing = true;
    return;
  }
  WarnKeywords(call, "add_edge");
  std::optional<std::string> source = Vertex(*call.args[0]);
  std::optional<std::string> target = Vertex(*call.args[1]);
  if (!source || !target) {
    graph.edges_missing = true;
    return;
  }
  AppendEdge(graph, {*std::move(source), *std::move(target)}, call.span, call.args[0]->span,
             call.args[1]->span);
}

void Interpreter::AppendEdge(GraphDraft& graph, Edge edge, SourceSpan span, SourceSpan source,
                             SourceSpan target) {
  WarnEndpoints(edge.source, source, edge.target, target);
  graph.edges.push_back(std::move(edge));
  graph.spans.edges.push_back(span);
  graph.spans.edge_names.push_back({source, target});
}

void Interpreter::WarnEndpoints(std::string_view source, SourceSpan source_span,
                                std::string_view target, SourceSpan target_span) {
  if (source == kEnd) {
    AddWarning(out(), errors::kWorkflowEndAsSource, source_span,
               "an edge may not leave END; such a workflow cannot be built",
               "name the node that comes before");
  }
  if (target == kStart) {
    AddWarning(out(), errors::kWorkflowStartAsTarget, target_span,
               "an edge may not lead to START; such a workflow cannot be built",
               "name the node to go back to");
  }
}

void Interpreter::SetEntryPoint(const python::Call& call, GraphDraft& graph) {
  std::optional<std::string> id = PointArgument(call, "set_entry_point");
  if (!id) {
    graph.edges_missing = true;
    return;
  }
  graph.entry_point = *std::move(id);
  graph.entry_point_span = call.args[0]->span;
}

void Interpreter::SetFinishPoint(const python::Call& call, GraphDraft& graph) {
  std::optional<std::string> id = PointArgument(call, "set_finish_point");
  if (!id) {
    graph.edges_missing = true;
    return;
  }
  AppendEdge(graph, {*std::move(id), std::string(kEnd)}, call.span, call.args[0]->span, {});
}

std::optional<std::string> Interpreter::PointArgument(const python::Call& call,
                                                      std::string_view method) {
  if (call.args.empty()) {
    AddError(out(), errors::kWorkflowEdgeForm, call.span,
             fmt::format("{} requires a string argument", method), "give it the id of a node");
    return std::nullopt;
  }
  if (call.args.size() > 1) {
    AddWarning(out(), errors::kWorkflowIgnoredArgument, call.args[1]->span,
               fmt::format("{} takes one node id; further arguments have no effect", method),
               "remove them, or add an edge for each");
  }
  WarnKeywords(call, method);
  return Text(*call.args[0], method, errors::kWorkflowEdgeForm);
}

void Interpreter::WarnKeywords(const python::Call& call, std::string_view what) {
  for (const python::Keyword* keyword : call.keywords) {
    AddWarning(out(), errors::kWorkflowIgnoredArgument, keyword->span,
               fmt::format("keyword arguments of {} have no effect", what), "remove it");
  }
}

// ---- conditional edges
// ---------------------------------------------------------------------------

void Interpreter::AddConditionalEdges(const python::Call& call, GraphDraft& graph) {
  const auto* config = call.args.size() == 2 ? IsA<python::Dict>(call.args[1]) : nullptr;
  if (config == nullptr) {
    AddError(
        out(), errors::kWorkflowConditionalEdgeForm, call.span,
        "add_conditional_edges expects (source, {path, mapping, default})",
        "routing functions cannot be used; write the state's path and a mapping of its values");
    graph.edges_missing = true;
    return;
  }
  WarnKeywords(call, "add_conditional_edges");
  ConditionalEdge edge;
  std::optional<std::string> source =
      Text(*call.args[0], "conditional edge source", errors::kWorkflowConditionalEdgeForm);
  ConditionalNames names{.source = call.args[0]->span, .targets = {}, .default_target = {}};
  const bool config_ok = ReadConditionalConfig(*config, edge, names, graph);
  if (!source || !config_ok) {
    graph.edges_missing = true;
    return;
  }
  edge.source = *std::move(source);
  WarnEndpoints(edge.source, call.args[0]->span, {}, {});
  graph.conditional_edges.push_back(std::move(edge));
  graph.spans.conditional_edges.push_back(call.span);
  graph.spans.conditional_names.push_back(std::move(names));
}

bool Interpreter::ReadConditionalConfig(const python::Dict& config, ConditionalEdge& edge,
                                        ConditionalNames& names, GraphDraft& graph) {
  bool ok = true;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < config.keys.size(); ++i) {
    const python::Expr& value = *config.values[i];
    const std::optional<std::string_view> key =
        config.keys[i] == nullptr ? std::nullopt : StringLiteral(*config.keys[i]);
    if (!key) {
      AddError(out(), errors::kWorkflowConditionalEdgeForm,
               config.keys[i] == nullptr ? value.span : config.keys[i]->span,
               "conditional edge config keys must be string literals",
               "write \"path\", \"mapping\" and \"default\"")
          .peer_line = config.span.line;
      ok = false;
      continue;
    }
    const bool repeated = !seen.insert(*key).second;
    if (*key == "path") {
      std::optional<std::string> path =
          Text(value, "conditional edge path", errors::kWorkflowConditionalEdgeForm);
      ok = ok && path.has_value();
      if (path && path->starts_with("state.")) graph.state_paths.push_back(value.span);
      edge.path = std::move(path).value_or("");
    } else if (*key == "mapping") {
      edge.mapping.clear();
      names.targets.clear();
      ok = ReadMapping(value, edge, names) && ok;
    } else if (*key == "default") {
      edge.default_target.reset();
      if (IsNone(value)) continue;
      edge.default_target = Vertex(value);
      names.default_target = value.span;
      if (edge.default_target) WarnEndpoints({}, {}, *edge.default_target, value.span);
      ok = ok && edge.default_target.has_value();
    } else {
      AddError(out(), errors::kWorkflowConditionalEdgeForm, config.keys[i]->span,
               fmt::format("unknown conditional edge config key '{}'", *key),
               "use \"path\", \"mapping\" and \"default\"");
      ok = false;
      continue;
    }
    if (repeated) {
      AddWarning(out(), errors::kWorkflowDuplicateKey, config.keys[i]->span,
                 fmt::format("key '{}' is given twice; the last value counts", *key),
                 "remove one of them");
    }
  }
  if (ok && (!seen.contains("path") || !seen.contains("mapping"))) {
    AddError(out(), errors::kWorkflowConditionalEdgeForm, config.span,
             "conditional edge config requires 'path' and 'mapping'", "add what is missing");
    return false;
  }
  return ok;
}

bool Interpreter::ReadMapping(const python::Expr& expr, ConditionalEdge& edge,
                              ConditionalNames& names) {
  const auto* mapping = IsA<python::Dict>(&expr);
  if (mapping == nullptr) {
    AddError(out(), errors::kWorkflowConditionalEdgeForm, expr.span,
             "conditional edge 'mapping' must be a dict literal",
             "write {\"value\": \"node id\", ...}");
    return false;
  }
  bool ok = true;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < mapping->keys.size(); ++i) {
    const python::Expr* key_expr = mapping->keys[i];
    const std::optional<std::string_view> key =
        key_expr == nullptr ? std::nullopt : StringLiteral(*key_expr);
    if (!key) {
      AddError(out(), errors::kWorkflowConditionalEdgeForm,
               key_expr == nullptr ? mapping->values[i]->span : key_expr->span,
               "conditional edge mapping keys must be string literals",
               "write the value as text: true, false, null and numbers are matched by their text")
          .peer_line = expr.span.line;
      ok = false;
      continue;
    }
    ok = CheckText(*key, key_expr->span) && ok;
    std::optional<std::string> target = Vertex(*mapping->values[i]);
    ok = ok && target.has_value();
    if (!target) continue;
    WarnEndpoints({}, {}, *target, mapping->values[i]->span);
    const auto [place, is_new] = places.try_emplace(*key, edge.mapping.size());
    if (is_new) {
      edge.mapping.emplace_back(*key, *std::move(target));
      names.targets.push_back(mapping->values[i]->span);
      continue;
    }
    edge.mapping[place->second].second = *std::move(target);
    names.targets[place->second] = mapping->values[i]->span;
    AddWarning(out(), errors::kWorkflowDuplicateKey, key_expr->span,
               fmt::format("key '{}' is given twice; the last target counts", *key),
               "remove one of them");
  }
  return ok;
}

// ---- texts
// ---------------------------------------------------------------------------------------

std::optional<std::string> Interpreter::Vertex(const python::Expr& expr) {
  if (const std::optional<std::string_view> text = StringLiteral(expr)) {
    if (!CheckText(*text, expr.span)) return std::nullopt;
    return std::string(*text);
  }
  const std::string_view name = BareName(&expr);
  if (name == "START") return std::string(kStart);
  if (name == "END") return std::string(kEnd);
  AddError(out(), errors::kWorkflowEdgeForm, expr.span,
           "edge endpoints must be node-id strings or START/END",
           "write the id in quotes, or START or END without");
  return std::nullopt;
}

std::optional<std::string> Interpreter::Text(const python::Expr& expr, std::string_view what,
                                             ErrorCode code) {
  const std::optional<std::string_view> text = StringLiteral(expr);
  if (!text) {
    AddError(out(), code, expr.span, fmt::format("{} must be a string literal", what),
             "write it in plain quotes");
    return std::nullopt;
  }
  if (!CheckText(*text, expr.span)) return std::nullopt;
  return std::string(*text);
}

bool Interpreter::CheckText(std::string_view text, SourceSpan span) {
  if (!HasLoneSurrogate(text)) return true;
  AddOwnError(out(), errors::kWorkflowLiteralNotJson, span,
              "this string holds a lone surrogate, which JSON cannot carry",
              "write the character itself or as \\U00012345");
  return false;
}

}  // namespace caisson::workflow
