// SPDX-License-Identifier: Apache-2.0
// Interpreter: add_node, the nodes that it adds, and their configs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/config.h"
#include "errors/policy.h"
#include "errors/workflow.h"
#include "workflow/interpreter.h"
#include "workflow/registry.h"
#include "workflow/report.h"

namespace caisson::workflow {
namespace {

using python::IsA;

constexpr std::string_view kPlaceholderType = "NoOpTaskNode";
constexpr const char* kInlineGraphHint =
    "assign the nested graph to a variable first, and add that";

// A string that holds a template whose path begins with `state.`, or is such a path in braces.
bool HasStatePath(std::string_view text) {
  for (std::size_t open = text.find("{{"); open != std::string_view::npos;
       open = text.find("{{", open + 2)) {
    const std::size_t start = text.find_first_not_of(" \t\r\n{", open + 2);
    if (start == std::string_view::npos) return false;
    if (text.substr(start).starts_with("state.") &&
        text.find("}}", start) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// Of the keyword's name, which its span begins with. A name that was normalised may be longer than
// what stands in the file.
SourceSpan NameSpan(const python::Keyword& keyword) {
  SourceSpan span = keyword.span;
  span.end_line = span.line;
  span.end_column = span.column + static_cast<std::uint32_t>(keyword.arg.size());
  if (keyword.value->span.line == span.line) {
    span.end_column = std::min(span.end_column, keyword.value->span.column);
  }
  return span;
}

}  // namespace

void Interpreter::AddNode(const python::Call& call, GraphDraft& graph) {
  const std::optional<NodeArguments> arguments = ReadNodeArguments(call);
  if (!arguments) {
    graph.nodes_missing = true;
    return;
  }
  WarnKeywords(call, "add_node");
  const auto [known, is_new] = graph.ids.try_emplace(arguments->id, arguments->id_span);
  if (!is_new) {
    AddError(out(), errors::kWorkflowDuplicateNodeId, arguments->id_span,
             fmt::format("duplicate node id '{}'", arguments->id),
             fmt::format("the id is taken on line {}; choose another", known->second.line))
        .peer_line = call.span.line;
  }
  NodeDraft node;
  node.span = call.span;
  node.id_span = arguments->id_span;
  const bool text_ok = CheckText(arguments->id, arguments->id_span);
  const bool made = arguments->node != nullptr && MakeNode(*arguments, node, graph);
  if (!is_new) return;
  if (!made || !text_ok) {
    node = {.node = BuiltinNode{std::string(arguments->id), std::string(kPlaceholderType), {}},
            .span = call.span,
            .id_span = arguments->id_span};
  }
  graph.nodes.push_back(std::move(node));
}

std::optional<Interpreter::NodeArguments> Interpreter::ReadNodeArguments(const python::Call& call) {
  bool poisoned = false;
  if (call.args.size() == 2) {
    const std::optional<std::string_view> id = StringLiteral(*call.args[0]);
    if (!id) {
      AddError(out(), errors::kWorkflowNodeForm, call.args[0]->span,
               "add_node id must be a string literal", "write the id in plain quotes");
    }
    const python::Expr* node = ResolveNode(*call.args[1], poisoned);
    if (!id) return std::nullopt;
    return NodeArguments{*id, call.args[0]->span, node, false};
  }
  if (call.args.size() != 1) {
    AddError(out(), errors::kWorkflowNodeForm, call.span, "add_node expects (id, node) or (node)",
             "write add_node(\"id\", SomeNode(...))");
    return std::nullopt;
  }
  const python::Expr* node = ResolveNode(*call.args[0], poisoned);
  if (node == nullptr) return std::nullopt;
  const auto* constructor = IsA<python::Call>(node);
  if (constructor == nullptr) {
    AddError(out(), errors::kWorkflowNodeForm, node->span,
             "add_node(node) requires a node constructor with name=...",
             "write add_node(\"id\", ...) to add it under an id");
    return std::nullopt;
  }
  for (const python::Keyword* keyword : constructor->keywords) {
    if (keyword->arg != "name") continue;
    const std::optional<std::string_view> id = StringLiteral(*keyword->value);
    if (id) return NodeArguments{*id, keyword->value->span, node, true};
    AddError(out(), errors::kWorkflowNodeForm, keyword->value->span,
             "node name must be a string literal", "write the name in plain quotes");
    return std::nullopt;
  }
  AddError(out(), errors::kWorkflowNodeForm, constructor->span,
           "add_node(node) requires the node to set name=...",
           "write add_node(\"id\", ...), or give the node a name");
  return std::nullopt;
}

// The call or the name that stands for the node; null (diagnosed, or poisoned) when it is neither.
const python::Expr* Interpreter::ResolveNode(const python::Expr& expr, bool& poisoned) {
  if (expr.kind == python::ExprKind::kCall) return &expr;
  const std::string_view name = BareName(&expr);
  if (name.empty()) {
    AddError(out(), errors::kWorkflowNodeForm, expr.span,
             "add_node target must be a node instance or nested graph",
             "write SomeNode(...), or the variable of a node or graph");
    return nullptr;
  }
  const auto node = nodes_.find(name);
  if (node != nodes_.end()) return node->second;
  poisoned = poisoned_.contains(name);
  return poisoned ? nullptr : &expr;
}

GraphDraft* Interpreter::GraphReference(const python::Expr& expr, bool& failed) {
  if (const auto graph = graphs_.find(BareName(&expr)); graph != graphs_.end()) {
    return &graph->second;
  }
  const auto* call = IsA<python::Call>(&expr);
  const python::Attribute* method = call == nullptr ? nullptr : MethodOfName(call->func);
  if (method == nullptr || method->attr != "compile") return nullptr;
  const std::string_view name = BareName(method->value);
  const auto graph = graphs_.find(name);
  if (graph == graphs_.end()) {
    failed = poisoned_.contains(name);
    return nullptr;
  }
  if (!call->args.empty() || !call->keywords.empty()) {
    AddError(out(), errors::kWorkflowNodeForm, call->span,
             "nested graph compile() calls may not pass arguments", "write compile()");
    failed = true;
    return nullptr;
  }
  return &graph->second;
}

bool Interpreter::MakeNode(const NodeArguments& arguments, NodeDraft& node, GraphDraft& graph) {
  bool failed = false;
  if (GraphDraft* nested = GraphReference(*arguments.node, failed)) {
    node.node = SubgraphNode{std::string(arguments.id), nullptr};
    node.subgraph = nested;
    return true;
  }
  if (failed) return false;
  const auto* call = IsA<python::Call>(arguments.node);
  if (call == nullptr) {
    AddError(out(), errors::kWorkflowNodeForm, arguments.node->span,
             "add_node target must be a node instance or nested graph",
             fmt::format("'{}' is assigned neither a node nor a StateGraph above this line",
                         BareName(arguments.node)));
    return false;
  }
  const std::string_view type = BareName(call->func);
  if (type.empty()) {
    AddError(out(), errors::kWorkflowNodeForm, call->func->span,
             fmt::format("node '{}' must be constructed from a node class", arguments.id),
             "import the class by its name and call that")
        .peer_line = call->span.line;
    return false;
  }
  bool ok = true;
  if (!call->args.empty()) {
    const bool graph_inline = type == "StateGraph";
    AddError(out(), errors::kWorkflowNodeForm, call->args[0]->span,
             fmt::format("node '{}' must be constructed with keyword arguments only", arguments.id),
             graph_inline ? kInlineGraphHint : "write field=value")
        .peer_line = call->span.line;
    if (graph_inline) return false;
    ok = false;
  }
  if (CodeClass* cls = session_.classes.Find(type)) {
    return MakeCodeNode(*cls, *call, arguments, node, graph) && ok;
  }
  return MakeBuiltinNode(type, *call, arguments, node, graph) && ok;
}

bool Interpreter::MakeCodeNode(CodeClass& cls, const python::Call& call,
                               const NodeArguments& arguments, NodeDraft& node, GraphDraft& graph) {
  json::Object given;
  const bool config_ok = ReadConfig(call, arguments, false, given, node, graph);
  if (!cls.usable()) return false;
  const std::vector<std::string> injected = cls.Injected(given);
  const bool body_ok = cls.Check(arguments.id, injected, session_.options, out());
  if (!config_ok || !body_ok || session_.grammar.Refused(&cls.definition())) return false;
  std::size_t own = 0;
  for (const auto& [key, value] : given) own += key.size() + EstimateBytes(value);
  const BodyTextResult& body = cls.Body(session_.lines);
  if (body.first_line != 0) node.body_span = {.line = body.first_line};
  node.bytes = own + cls.bytes();
  if (!Afford(node.bytes, call.span)) return false;
  CodeNode made{.id = std::string(arguments.id),
                .config = cls.defaults(),
                .injected = injected,
                .body = body.text};
  for (const auto& [key, value] : given) made.config.Set(key, value);
  node.node = std::move(made);
  return true;
}

bool Interpreter::MakeBuiltinNode(std::string_view type, const python::Call& call,
                                  const NodeArguments& arguments, NodeDraft& node,
                                  GraphDraft& graph) {
  node.type = FindNodeType(type);
  if (node.type == nullptr) {
    ReportUnknownType(type, call, arguments.id);
    return false;
  }
  bool ok = true;
  if (session_.options.enforce_node_policy && node.type->restricted) {
    AddError(out(), errors::kPolicyNodeRestricted, call.span,
             NodePolicyRefusal(*node.type, arguments.id), "use a node that needs no host access");
    ok = false;
  }
  node.config_spans.type = call.func->span;
  BuiltinNode made{.id = std::string(arguments.id), .type = std::string(type), .config = {}};
  ok = ReadConfig(call, arguments, true, made.config, node, graph) && ok;
  if (!ok) return false;
  for (const auto& [key, value] : made.config) node.bytes += key.size() + EstimateBytes(value);
  if (!Afford(node.bytes, call.span)) return false;
  node.node = std::move(made);
  return true;
}

void Interpreter::ReportUnknownType(std::string_view type, const python::Call& call,
                                    std::string_view id) {
  std::string hint = NodeTypeHint(type);
  if (type == "StateGraph") {
    hint = kInlineGraphHint;
  } else if (session_.builders.contains(type)) {
    hint =
        "a builder's graph can be used in WorkflowTool(graph=...) only; nest a StateGraph variable";
  } else if (session_.schemas.Contains(type)) {
    hint = "a schema is not a node; inherit from CodeNode";
  } else if (const auto imported = session_.imports.find(type);
             imported != session_.imports.end() && imported->second.name != type) {
    hint = fmt::format("node types go by their own names: write {}(...)", imported->second.name);
  }
  if (hint.empty()) hint = "name a built-in node type, or define a CodeNode class of that name";
  AddError(out(), errors::kWorkflowUnknownNodeType, call.func->span,
           fmt::format("unknown node type '{}' for node '{}'", type, id), std::move(hint))
      .peer_line = call.span.line;
}

// ---- configs
// -------------------------------------------------------------------------------------

bool Interpreter::ReadConfig(const python::Call& call, const NodeArguments& arguments, bool builtin,
                             json::Object& config, NodeDraft& node, GraphDraft& graph) {
  const std::string where = fmt::format("node '{}'", arguments.id);
  bool ok = true;
  bool name_seen = false;
  for (const python::Keyword* keyword : call.keywords) {
    if (keyword->arg.data() == nullptr) {
      AddError(out(), errors::kWorkflowNodeForm, keyword->span,
               fmt::format("node '{}' may not use ** keyword unpacking", arguments.id),
               "write the keywords out")
          .peer_line = call.span.line;
      ok = false;
      continue;
    }
    if (keyword->arg == "name") {
      CheckName(*keyword, arguments, name_seen);
      continue;
    }
    if (config.Contains(keyword->arg)) {
      AddWarning(out(), errors::kWorkflowDuplicateKey, keyword->span,
                 fmt::format("{}: '{}' is given twice; the last value counts", where, keyword->arg),
                 "remove one of them");
    }
    const python::Expr& value = *keyword->value;
    node.config_spans.fields.push_back({keyword->arg, NameSpan(*keyword), value.span});
    std::optional<json::Value> lowered;
    if (builtin && keyword->arg == "workflow_tools") {
      node.tools.emplace();
      ok = ReadTools(value, arguments.id, *node.tools, graph) && ok;
      lowered.emplace(nullptr);  // holds the place
    } else if (builtin && keyword->arg == "response_format") {
      lowered = SchemaOrLiteral(value);
      if (lowered) {
        session_.schemas_in_use.emplace_back(fmt::format("{}.response_format", arguments.id),
                                             *lowered);
      }
    } else {
      lowered = LowerLiteral(value, where,
                             builtin ? CredentialPolicy::kAllow : CredentialPolicy::kForbidWide,
                             builtin ? &session_.imports : nullptr, out());
      NoteStatePaths(value, graph);
      if (builtin && node.type->name == "SubWorkflowNode" && keyword->arg == "steps") {
        CheckSteps(value, arguments.id);
      }
    }
    if (keyword->arg.starts_with(kKindMarker)) {
      AddOwnError(out(), errors::kWorkflowReservedKey, keyword->span,
                  fmt::format("{}: keys that begin with '{}' are reserved", where, kKindMarker),
                  "choose another name");
      ok = false;
    }
    ok = ok && lowered.has_value();
    if (ok) config.Set(keyword->arg, *std::move(lowered));
  }
  return ok;
}

void Interpreter::CheckName(const python::Keyword& keyword, const NodeArguments& arguments,
                            bool& seen) {
  const std::optional<std::string_view> name = StringLiteral(*keyword.value);
  if (name != arguments.id) {
    AddWarning(
        out(), errors::kWorkflowNameMismatch, keyword.value->span,
        name ? fmt::format("name '{}' differs from the id '{}', which counts", *name, arguments.id)
             : fmt::format("the name of node '{}' is not read; its id counts", arguments.id),
        "give both the same text, or leave the name out");
  } else if (seen) {
    AddWarning(out(), errors::kWorkflowDuplicateKey, keyword.span,
               fmt::format("node '{}': 'name' is given twice", arguments.id), "remove one of them");
  }
  seen = true;
}

// The steps of a SubWorkflowNode are nodes, and pass the same policy.
void Interpreter::CheckSteps(const python::Expr& steps, std::string_view id) {
  python::List<python::Expr*> elements;
  if (const auto* list = IsA<python::ListExpr>(&steps)) elements = list->elts;
  if (const auto* tuple = IsA<python::Tuple>(&steps)) elements = tuple->elts;
  for (const python::Expr* element : elements) {
    if (const auto* step = IsA<python::Dict>(element)) CheckStep(*step, id);
  }
}

void Interpreter::CheckStep(const python::Dict& step, std::string_view id) {
  bool typed = false;
  for (std::size_t i = 0; i < step.keys.size(); ++i) {
    const std::optional<std::string_view> key =
        step.keys[i] == nullptr ? std::nullopt : StringLiteral(*step.keys[i]);
    if (key == "steps") CheckSteps(*step.values[i], id);
    if (key != "type") continue;
    typed = true;
    CheckStepType(StringLiteral(*step.values[i]).value_or(""), step.values[i]->span, id);
  }
  if (!typed) CheckStepType("", step.span, id);
}

void Interpreter::CheckStepType(std::string_view name, SourceSpan span, std::string_view id) {
  if (const std::string fault = StepTypeFault(name); !fault.empty()) {
    AddWarning(out(), errors::kConfigUnknownStepType, span,
               fmt::format("node '{}': {}; such a workflow cannot be run", id, fault),
               StepTypeHint(name));
  }
  const NodeType* type = FindNodeType(name);
  if (type == nullptr || !type->restricted || !session_.options.enforce_node_policy) return;
  AddOwnError(out(), errors::kPolicyNodeRestricted, span, NodePolicyRefusal(*type, id),
              "use a node that needs no host access");
}

void Interpreter::NoteStatePaths(const python::Expr& expr, GraphDraft& graph) {
  if (const std::optional<std::string_view> text = StringLiteral(expr)) {
    if (HasStatePath(*text)) graph.state_paths.push_back(expr.span);
  } else if (const auto* list = IsA<python::ListExpr>(&expr)) {
    for (const python::Expr* element : list->elts) NoteStatePaths(*element, graph);
  } else if (const auto* tuple = IsA<python::Tuple>(&expr)) {
    for (const python::Expr* element : tuple->elts) NoteStatePaths(*element, graph);
  } else if (const auto* dict = IsA<python::Dict>(&expr)) {
    for (const python::Expr* value : dict->values) NoteStatePaths(*value, graph);
  }
}

bool Interpreter::Afford(std::size_t bytes, SourceSpan span) {
  session_.bytes += bytes;
  if (session_.bytes <= kMaxExpandedSize.bytes) return true;
  if (!std::exchange(session_.too_large, true)) {
    AddOwnError(out(), errors::kWorkflowGraphTooLarge, span,
                fmt::format("the nodes up to here take more than {} MiB when written out",
                            kMaxExpandedSize.bytes >> 20),
                "make the bodies and defaults that the nodes share smaller, or use fewer nodes");
  }
  return false;
}

}  // namespace caisson::workflow
