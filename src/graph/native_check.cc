// SPDX-License-Identifier: Apache-2.0
#include "graph/native_check.h"

#include <string>
#include <vector>

#include "errors/config.h"
#include "errors/graph.h"
#include "workflow/registry.h"

namespace caisson::graph {
namespace {

constexpr std::size_t kMaxNamed = 100;  // in the message; the rest is counted

class Finder {
 public:
  Finder(const nodes::Table& table, const host::Provider* host) : table_(table), host_(host) {}

  void Graph(const workflow::Graph& graph, const std::string& place, int depth) {
    if (depth > workflow::kMaxGraphDepth + 1) return;  // the builder refuses it
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const SourceSpan span = i < graph.spans.nodes.size() ? graph.spans.nodes[i] : SourceSpan{};
      if (const auto* builtin = std::get_if<workflow::BuiltinNode>(&graph.nodes[i])) {
        Type(builtin->type, "node '" + builtin->id + "'", place, span);
        for (const auto& [key, value] : builtin->config) {
          Config(value, Within(place, "node '" + builtin->id + "' " + key), depth);
        }
        Steps(builtin->type, builtin->config, Within(place, "node '" + builtin->id + "'"), span,
              depth);
      } else if (const auto* sub = std::get_if<workflow::SubgraphNode>(&graph.nodes[i])) {
        if (sub->graph != nullptr) {
          Graph(*sub->graph, Within(place, "subgraph '" + sub->id + "'"), depth + 1);
        }
      }
    }
  }

  Result<void> Finish() const {
    if (missing_.count != 0) {
      return Fail(
          Status{.code = errors::kConfigUnknownStepType,
                 .message = "these steps have no type that exists: " + missing_.Text() + ".",
                 .span = missing_.first,
                 .details = foreign_.count != 0 ? NotNative() : ""});
    }
    if (foreign_.count == 0) return {};
    return Fail(errors::kGraphNotNative, NotNative(), foreign_.first);
  }

 private:
  static std::string Within(const std::string& outer, const std::string& inner) {
    return outer.empty() ? inner : outer + ", " + inner;
  }

  // Nodes of one kind, in words.
  struct List {
    std::size_t count = 0;
    std::string named;
    SourceSpan first;

    void Add(const std::string& type, const std::string& node, const std::string& place,
             SourceSpan span) {
      if (count == 0) first = span;
      if (++count > kMaxNamed) return;
      if (!named.empty()) named += "; ";
      named += type + " (" + node;
      if (!place.empty()) named += " in " + place;
      if (span.known()) named += ", line " + std::to_string(span.line);
      named += ")";
    }
    std::string Text() const {
      return count <= kMaxNamed ? named
                                : named + " and " + std::to_string(count - kMaxNamed) + " more";
    }
  };

  std::string NotNative() const {
    std::string message =
        "these nodes cannot run here yet, since their types are not native: " + foreign_.Text() +
        ". Native types are ";
    const char* separator = "";
    for (const nodes::NodeType* type : table_.types()) {
      message += separator + std::string(type->name);
      separator = ", ";
    }
    message += ".";
    if (host_ != nullptr) message += " The node host does not serve them (--node-host-types).";
    return message;
  }

  void Type(const std::string& type, const std::string& node, const std::string& place,
            SourceSpan span) {
    if (table_.Find(type) != nullptr) return;
    if (host_ != nullptr && host_->Find(type) != nullptr) return;
    foreign_.Add(type, node, place, span);
  }

  // Graphs of workflow tools, which stand in configurations as JSON.
  void Config(const json::Value& value, const std::string& place, int depth) {
    if (value.is_array()) {
      for (const json::Value& item : value.as_array()) Config(item, place, depth);
    } else if (value.is_object()) {
      const json::Value* kind = value.Find(workflow::kKindMarker);
      if (kind != nullptr && *kind == json::Value("workflow_tool")) {
        const json::Value* name = value.Find("name");
        const std::string tool = name != nullptr && name->is_string() ? name->as_string() : "?";
        const json::Value* graph = value.Find("graph");
        if (graph != nullptr) JsonGraph(*graph, Within(place, "tool '" + tool + "'"), depth + 1);
        return;
      }
      for (const auto& [key, member] : value.as_object()) Config(member, place, depth);
    }
  }

  static std::string Text(const json::Value& object, std::string_view key) {
    const json::Value* value = object.Find(key);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  }

  void JsonGraph(const json::Value& graph, const std::string& place, int depth) {
    const json::Value* list = graph.Find("nodes");
    if (depth > workflow::kMaxGraphDepth + 1 || list == nullptr || !list->is_array()) return;
    for (const json::Value& node : list->as_array()) {
      const std::string id = Text(node, "id");
      const std::string kind = Text(node, "kind");
      if (kind == "builtin") {
        const std::string type = Text(node, "type");
        Type(type, "node '" + id + "'", place, {});
        const json::Value* config = node.Find("config");
        if (config == nullptr || !config->is_object()) continue;
        Config(*config, Within(place, "node '" + id + "'"), depth);
        Steps(type, config->as_object(), Within(place, "node '" + id + "'"), {}, depth);
      } else if (kind == "subgraph" && node.Find("graph") != nullptr) {
        JsonGraph(*node.Find("graph"), Within(place, "subgraph '" + id + "'"), depth + 1);
      }
    }
  }

  // A step whose type is a template, or that is one as a whole, is known only when it runs.
  void Steps(const std::string& type, const json::Object& config, const std::string& place,
             SourceSpan span, int depth) {
    const json::Value* steps = type == "SubWorkflowNode" ? config.Find("steps") : nullptr;
    if (steps == nullptr || !steps->is_array()) return;
    std::size_t index = 0;
    for (const json::Value& step : steps->as_array()) {
      const std::string where = "step " + std::to_string(++index);
      if (!step.is_object()) continue;
      const std::string step_type = Text(step, "type");
      if (!workflow::StepTypeFault(step_type).empty()) {
        missing_.Add(step_type.empty() ? "no type" : "'" + step_type + "'", where, place, span);
      } else if (!workflow::HasTemplate(step_type)) {
        Type(step_type, where, place, span);
      }
      Steps(step_type, step.as_object(), Within(place, where), span, depth);
    }
  }

  const nodes::Table& table_;
  const host::Provider* host_;
  List foreign_;  // types that exist, but are not native
  List missing_;  // steps whose type does not exist
};

}  // namespace

Result<void> RequireNative(const workflow::Graph& graph, const nodes::Table& table,
                           const host::Provider* host) {
  Finder finder(table, host);
  finder.Graph(graph, "", 1);
  return finder.Finish();
}

}  // namespace caisson::graph
