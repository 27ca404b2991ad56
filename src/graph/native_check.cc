// SPDX-License-Identifier: Apache-2.0
#include "graph/native_check.h"

#include <string>
#include <vector>

#include "errors/graph.h"
#include "workflow/registry.h"

namespace caisson::graph {
namespace {

constexpr std::size_t kMaxNamed = 100;  // in the message; the rest is counted

class Finder {
 public:
  explicit Finder(const nodes::Table& table) : table_(table) {}

  void Graph(const workflow::Graph& graph, const std::string& place, int depth) {
    if (depth > workflow::kMaxGraphDepth + 1) return;  // the builder refuses it
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const SourceSpan span = i < graph.spans.nodes.size() ? graph.spans.nodes[i] : SourceSpan{};
      if (const auto* builtin = std::get_if<workflow::BuiltinNode>(&graph.nodes[i])) {
        Type(builtin->type, "node '" + builtin->id + "'", place, span);
        for (const auto& [key, value] : builtin->config) {
          Config(value, Within(place, "node '" + builtin->id + "' " + key), depth);
        }
        Steps(builtin->type, builtin->config, Within(place, "node '" + builtin->id + "'"), depth);
      } else if (const auto* sub = std::get_if<workflow::SubgraphNode>(&graph.nodes[i])) {
        if (sub->graph != nullptr) {
          Graph(*sub->graph, Within(place, "subgraph '" + sub->id + "'"), depth + 1);
        }
      }
    }
  }

  Result<void> Finish() {
    if (count_ == 0) return {};
    std::string message = "these nodes cannot run here yet, since their types are not native: ";
    message += named_;
    if (count_ > kMaxNamed) message += " and " + std::to_string(count_ - kMaxNamed) + " more";
    message += ". Native types are ";
    const char* separator = "";
    for (const nodes::NodeType* type : table_.types()) {
      message += separator + std::string(type->name);
      separator = ", ";
    }
    return Fail(errors::kGraphNotNative, message + ".", first_);
  }

 private:
  static std::string Within(const std::string& outer, const std::string& inner) {
    return outer.empty() ? inner : outer + ", " + inner;
  }

  void Type(const std::string& type, const std::string& node, const std::string& place,
            SourceSpan span) {
    if (table_.Find(type) != nullptr) return;
    if (count_ == 0) first_ = span;
    if (++count_ > kMaxNamed) return;
    if (!named_.empty()) named_ += "; ";
    named_ += type + " (" + node;
    if (!place.empty()) named_ += " in " + place;
    if (span.known()) named_ += ", line " + std::to_string(span.line);
    named_ += ")";
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
        Steps(type, config->as_object(), Within(place, "node '" + id + "'"), depth);
      } else if (kind == "subgraph" && node.Find("graph") != nullptr) {
        JsonGraph(*node.Find("graph"), Within(place, "subgraph '" + id + "'"), depth + 1);
      }
    }
  }

  // Steps with a type that does not exist at all fail when they run, as in the peer.
  void Steps(const std::string& type, const json::Object& config, const std::string& place,
             int depth) {
    const json::Value* steps = type == "SubWorkflowNode" ? config.Find("steps") : nullptr;
    if (steps == nullptr || !steps->is_array()) return;
    std::size_t index = 0;
    for (const json::Value& step : steps->as_array()) {
      const std::string where = "step " + std::to_string(++index);
      const std::string step_type = Text(step, "type");
      if (workflow::FindNodeType(step_type) != nullptr) Type(step_type, where, place, {});
      if (step.is_object()) {
        Steps(step_type, step.as_object(), Within(place, where), depth);
      }
    }
  }

  const nodes::Table& table_;
  std::size_t count_ = 0;
  std::string named_;
  SourceSpan first_;
};

}  // namespace

Result<void> RequireNative(const workflow::Graph& graph, const nodes::Table& table) {
  Finder finder(table);
  finder.Graph(graph, "", 1);
  return finder.Finish();
}

}  // namespace caisson::graph
