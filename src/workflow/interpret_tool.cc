// SPDX-License-Identifier: Apache-2.0
// Interpreter: workflow tools, helper builders, and values that may be schemas.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "errors/workflow.h"
#include "json/reader.h"
#include "workflow/interpreter.h"
#include "workflow/registry.h"
#include "workflow/report.h"

namespace caisson::workflow {
namespace {

using python::IsA;

constexpr std::array<std::string_view, 6> kToolKeys = {
    "name", "description", "graph", "args_schema", "output_path", "return_direct"};
// Of helpers that use helpers; deeper ones could not pass the IR's depth limit.
constexpr std::size_t kMaxHelperStack = kMaxDraftDepth;

bool IsNone(const python::Expr& expr) {
  const auto* constant = IsA<python::Constant>(&expr);
  return constant != nullptr && constant->constant == python::ConstantKind::kNone;
}

template <typename Arguments>
const python::Expr* Argument(const Arguments& arguments, std::string_view key) {
  for (const auto& [name, value] : arguments) {
    if (name == key) return value;
  }
  return nullptr;
}

}  // namespace

bool Interpreter::ReadTools(const python::Expr& expr, std::string_view node_id,
                            std::vector<ToolDraft>& tools, GraphDraft& graph) {
  python::List<python::Expr*> elements;
  if (const auto* list = IsA<python::ListExpr>(&expr)) {
    elements = list->elts;
  } else if (const auto* tuple = IsA<python::Tuple>(&expr)) {
    elements = tuple->elts;
  } else {
    AddError(out(), errors::kWorkflowToolForm, expr.span,
             "workflow_tools must be a list of WorkflowTool(...) calls or dicts",
             "write [WorkflowTool(...), ...]");
    return false;
  }
  bool ok = true;
  for (const python::Expr* element : elements) {
    ToolDraft tool;
    tool.span = element->span;
    ok = ReadTool(*element, node_id, tool, graph) && ok;
    tools.push_back(std::move(tool));
  }
  return ok;
}

bool Interpreter::ReadTool(const python::Expr& expr, std::string_view node_id, ToolDraft& tool,
                           GraphDraft& graph) {
  ToolArguments arguments;
  bool ok = ReadToolArguments(expr, arguments);
  // After a form that holds no arguments, what is missing is no further error.
  if (!ok && arguments.empty()) return false;
  json::Object& marker = tool.marker;
  marker.Set(kKindMarker, "workflow_tool");
  ok = ReadToolText(expr, arguments, "name", marker) && ok;
  ok = ReadToolText(expr, arguments, "description", marker) && ok;
  marker.Set("graph", nullptr);
  ok = ReadToolGraph(expr, arguments, tool) && ok;
  marker.Set("output_path", nullptr);
  const python::Expr* path = Argument(arguments, "output_path");
  if (path != nullptr && !IsNone(*path)) {
    ok = ReadToolText(expr, arguments, "output_path", marker) && ok;
    const std::optional<std::string_view> text = StringLiteral(*path);
    if (text && text->starts_with("state.")) graph.state_paths.push_back(path->span);
  }
  marker.Set("return_direct", false);
  const python::Expr* schema = Argument(arguments, "args_schema");
  if (schema != nullptr && !IsNone(*schema)) {
    std::optional<json::Value> lowered = SchemaOrLiteral(*schema);
    ok = ok && lowered.has_value();
    if (lowered) {
      const json::Value* name = marker.Find("name");
      session_.schemas_in_use.emplace_back(
          fmt::format("{}.workflow_tools.{}", node_id,
                      name != nullptr && name->is_string() ? name->as_string() : ""),
          *lowered);
      marker.Set("args_schema", *std::move(lowered));
    }
  }
  if (const python::Expr* direct = Argument(arguments, "return_direct")) {
    const auto* constant = IsA<python::Constant>(direct);
    const bool is_true = constant != nullptr && constant->constant == python::ConstantKind::kTrue;
    if (is_true || (constant != nullptr && constant->constant == python::ConstantKind::kFalse)) {
      marker.Set("return_direct", is_true);
    } else {
      AddError(out(), errors::kWorkflowToolForm, direct->span,
               "WorkflowTool return_direct must be a boolean literal", "write True or False");
      ok = false;
    }
  }
  return ok;
}

bool Interpreter::ReadToolArguments(const python::Expr& expr, ToolArguments& arguments) {
  if (const auto* call = IsA<python::Call>(&expr); call && BareName(call->func) == "WorkflowTool") {
    if (call->args.empty()) return ReadToolKeywords(*call, arguments);
    AddError(out(), errors::kWorkflowToolForm, call->args[0]->span,
             "WorkflowTool must be constructed with keyword arguments only", "write name=value")
        .peer_line = call->span.line;
    return false;
  }
  if (const auto* dict = IsA<python::Dict>(&expr)) return ReadToolDict(*dict, arguments);
  AddError(out(), errors::kWorkflowToolForm, expr.span,
           "workflow_tools entries must be WorkflowTool(...) calls or dict literals",
           "write WorkflowTool(name=..., description=..., graph=...)");
  return false;
}

bool Interpreter::ReadToolKeywords(const python::Call& call, ToolArguments& arguments) {
  bool ok = true;
  for (const python::Keyword* keyword : call.keywords) {
    if (keyword->arg.data() == nullptr) {
      AddError(out(), errors::kWorkflowToolForm, keyword->span,
               "WorkflowTool may not use ** keyword unpacking", "write the keywords out")
          .peer_line = call.span.line;
      ok = false;
      continue;
    }
    ok = AddToolArgument(arguments, keyword->arg, *keyword->value, keyword->span, "keyword") && ok;
  }
  return ok;
}

bool Interpreter::ReadToolDict(const python::Dict& dict, ToolArguments& arguments) {
  bool ok = true;
  for (std::size_t i = 0; i < dict.keys.size(); ++i) {
    const python::Expr* key = dict.keys[i];
    if (key == nullptr) {
      AddError(out(), errors::kWorkflowToolForm, dict.values[i]->span,
               "WorkflowTool may not use dict unpacking", "write the entries out")
          .peer_line = dict.span.line;
      ok = false;
      continue;
    }
    const std::optional<std::string_view> text = StringLiteral(*key);
    if (!text) {
      AddError(out(), errors::kWorkflowToolForm, key->span,
               "WorkflowTool dict keys must be string literals", "put the key in quotes");
      ok = false;
      continue;
    }
    ok = AddToolArgument(arguments, *text, *dict.values[i], key->span, "key") && ok;
  }
  return ok;
}

bool Interpreter::AddToolArgument(ToolArguments& arguments, std::string_view key,
                                  const python::Expr& value, SourceSpan span,
                                  std::string_view kind) {
  if (std::ranges::find(kToolKeys, key) == kToolKeys.end()) {
    AddError(out(), errors::kWorkflowToolForm, span,
             fmt::format("WorkflowTool {} '{}' is not supported in restricted mode", kind, key),
             "use name, description, graph, args_schema, output_path and return_direct");
    return false;
  }
  if (Argument(arguments, key) != nullptr) {
    AddError(out(), errors::kWorkflowToolForm, span,
             fmt::format("WorkflowTool {} '{}' is duplicated", kind, key), "remove one of them");
    return false;
  }
  arguments.emplace_back(key, &value);
  return true;
}

bool Interpreter::ReadToolText(const python::Expr& tool, const ToolArguments& arguments,
                               std::string_view key, json::Object& marker) {
  marker.Set(key, nullptr);
  const python::Expr* value = Argument(arguments, key);
  if (value == nullptr) {
    AddError(out(), errors::kWorkflowToolForm, tool.span,
             fmt::format("WorkflowTool requires '{}'", key), "add it")
        .peer_line = 0;
    return false;
  }
  std::optional<std::string> text =
      Text(*value, fmt::format("WorkflowTool {}", key), errors::kWorkflowToolForm);
  if (!text) return false;
  marker.Set(key, *std::move(text));
  return true;
}

bool Interpreter::ReadToolGraph(const python::Expr& tool, const ToolArguments& arguments,
                                ToolDraft& draft) {
  const python::Expr* expr = Argument(arguments, "graph");
  if (expr == nullptr) {
    AddError(out(), errors::kWorkflowToolForm, tool.span, "WorkflowTool requires 'graph'",
             "give it a StateGraph variable, or the call of a helper builder")
        .peer_line = 0;
    return false;
  }
  bool failed = false;
  draft.local = GraphReference(*expr, failed);
  if (failed) return false;
  if (draft.local != nullptr) return true;
  const auto* call = IsA<python::Call>(expr);
  const std::string_view name = call == nullptr ? BareName(expr) : BareName(call->func);
  if (call == nullptr && poisoned_.contains(name)) return false;
  if (call == nullptr || !session_.builders.contains(name)) {
    AddError(out(), errors::kWorkflowToolForm, expr->span,
             "WorkflowTool graph must reference a StateGraph variable or helper graph builder",
             session_.builders.contains(name) ? fmt::format("call it: {}()", name)
                                              : "write graph=helper() or graph=variable");
    return false;
  }
  if (!call->args.empty() || !call->keywords.empty()) {
    AddError(out(), errors::kWorkflowToolForm, call->span,
             "workflow-tool graph builder calls may not pass arguments",
             fmt::format("write {}()", name));
    return false;
  }
  draft.helper = Helper(name, expr->span);
  return draft.helper != nullptr;
}

// What the helper builder `name` returns, interpreted on its first use; null when it was refused.
std::shared_ptr<FinishedGraph> Interpreter::Helper(std::string_view name, SourceSpan span) {
  if (const auto known = session_.helpers.find(name); known != session_.helpers.end()) {
    return known->second;
  }
  std::vector<std::string_view>& stack = session_.helper_stack;
  std::string_view again = name;
  bool cycle = std::ranges::find(stack, name) != stack.end();
  if (name == kEntrypointName && !cycle) {
    // The entrypoint would be interpreted anew, up to the helper that is under way.
    cycle = true;
    if (!stack.empty()) again = stack.front();
  }
  if (cycle) {
    std::string path = fmt::format("{}", fmt::join(stack, " -> "));
    if (name == kEntrypointName && std::ranges::find(stack, name) == stack.end()) {
      path += fmt::format("{}{}", path.empty() ? "" : " -> ", name);
    }
    AddError(
        out(), errors::kWorkflowBuilderCycle, span,
        fmt::format("recursive workflow-tool graph builder cycle detected: {} -> {}", path, again),
        "let one of them use a graph that uses none of the others")
        .peer_line = 0;
    return nullptr;
  }
  if (stack.size() >= kMaxHelperStack) {
    AddOwnError(out(), errors::kWorkflowGraphTooDeep, span,
                "helper graph builders use one another too deeply", "nest at most 32 graphs");
    return nullptr;
  }
  stack.push_back(name);
  std::shared_ptr<FinishedGraph> finished = Interpreter(session_).Run(*session_.builders.at(name));
  stack.pop_back();
  session_.helpers[name] = finished;
  return finished;
}

std::optional<json::Value> Interpreter::SchemaOrLiteral(const python::Expr& expr) {
  if (const auto* name = IsA<python::Name>(&expr)) {
    if (session_.schemas.Contains(name->id)) {
      session_.used_schemas.insert(name->id);
      const auto [lowered, is_new] = session_.lowered_schemas.try_emplace(name->id);
      if (is_new) lowered->second = session_.schemas.Lower(name->id, out());
      return lowered->second;
    }
    bool handled = false;
    std::optional<json::Value> schema = ModelSchema(*name, handled);
    if (handled) return schema;
  }
  // The peer checks the whole value before it evaluates it as a whole.
  std::vector<Diagnostic> found;
  std::optional<json::Value> value =
      LowerLiteral(expr, "schema config", CredentialPolicy::kForbid, nullptr, found);
  for (const bool evaluating : {false, true}) {
    for (Diagnostic& diagnostic : found) {
      if ((diagnostic.code == errors::kWorkflowLiteralUnevaluable) != evaluating) continue;
      if (evaluating) diagnostic.peer_line = expr.span.line;
      out().push_back(std::move(diagnostic));
    }
  }
  return value;
}

std::optional<json::Value> Interpreter::ModelSchema(const python::Name& name, bool& handled) {
  const auto imported = session_.imports.find(name.id);
  if (imported == session_.imports.end()) return std::nullopt;
  const ModelReference reference = LowerModelName(name, session_.imports, out());
  handled = reference.failed || reference.marker.has_value();
  if (!reference.marker) return std::nullopt;
  const ModelResult found = FindModel(imported->second.module, imported->second.name);
  Result<json::Value> schema = json::Read(found.model->schema_json);
  if (schema) return *std::move(schema);
  AddOwnError(out(), errors::kWorkflowLiteralRequired, name.span,
              fmt::format("schema config: model '{}' has no JSON Schema", name.id),
              "write the schema as a BaseModel class of this file, or as a dict");
  return std::nullopt;
}

}  // namespace caisson::workflow
