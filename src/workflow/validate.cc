// SPDX-License-Identifier: Apache-2.0
#include "workflow/validate.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>

#include "errors/ir.h"
#include "json/hash.h"
#include "workflow/ir_form.h"
#include "workflow/registry.h"
#include "workflow/spec_repr.h"

namespace caisson::workflow {
namespace {

struct HashId {
  std::size_t operator()(std::string_view id) const { return json::HashKey(id); }
};
using Ids = std::unordered_set<std::string_view, HashId>;

bool IsSentinel(std::string_view id) { return id == kStart || id == kEnd; }

// Whether Python's str.strip leaves nothing.
bool IsBlank(std::string_view text) {
  static constexpr std::string_view kWide[] = {
      "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
      "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
      "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
      "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  while (!text.empty()) {
    const char c = text.front();
    std::size_t width = c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
    for (std::string_view wide : kWide) {
      if (text.starts_with(wide)) width = wide.size();
    }
    if (width == 0) return false;
    text.remove_prefix(width);
  }
  return true;
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// The way from a config to one of its values; written out only when a message needs it.
struct ConfigStep {
  const ConfigStep* outer;
  const std::string* key;  // or null: `index`
  std::size_t index;
};
void AppendSteps(const ConfigStep* step, std::string& path) {
  if (step == nullptr) return;
  AppendSteps(step->outer, path);
  path += step->key != nullptr ? "." + *step->key : "[" + std::to_string(step->index) + "]";
}

class Validator {
 public:
  Validator(const ValidateHints& hints, std::vector<Diagnostic>& out) : hints_(hints), out_(out) {}

  // `path` is the graph's as the peer names it, `place` its JSON path.
  void Validate(const Graph& graph, const std::string& path, const std::string& place, int depth,
                SourceSpan holder) {
    if (depth > kMaxGraphDepth) {
      Report(errors::kIrTooDeep, holder, path, place,
             path + " nesting depth exceeds the maximum of " + std::to_string(kMaxGraphDepth),
             "put the inner nodes into fewer graphs");
      return;
    }
    const Scope scope{graph, path, place, holder, !hints_.incomplete.contains(&graph)};
    const Ids ids = ValidateNodes(scope);
    ValidateEntrypoint(scope, ids);
    ValidateEdges(scope, ids);
    ValidateConditionalEdges(scope, ids);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const SourceSpan span = SpanAt(graph.spans.nodes, i, holder);
      if (const auto* builtin = std::get_if<BuiltinNode>(&graph.nodes[i])) {
        const ConfigScope config{path + " node " + Quoted(builtin->id) + " config",
                                 place + ".nodes[" + std::to_string(i) + "].config", depth, span};
        ValidateMembers(builtin->config, nullptr, config);
      } else if (const auto* nested = std::get_if<SubgraphNode>(&graph.nodes[i])) {
        Validate(*nested->graph, path + " subgraph " + Quoted(nested->id),
                 place + ".nodes[" + std::to_string(i) + "].graph", depth + 1, span);
      }
    }
  }

 private:
  struct Scope {
    const Graph& graph;
    const std::string& path;
    const std::string& place;
    SourceSpan holder;
    bool complete;
  };
  struct ConfigScope {
    std::string path;
    std::string place;
    int depth;
    SourceSpan span;
  };

  static SourceSpan SpanAt(const std::vector<SourceSpan>& spans, std::size_t index,
                           SourceSpan holder) {
    return index < spans.size() && spans[index].known() ? spans[index] : holder;
  }

  static SourceSpan OrElse(SourceSpan span, SourceSpan statement) {
    return span.known() ? span : statement;
  }
  template <typename Names>
  static Names NamesAt(const std::vector<Names>& names, std::size_t index) {
    return index < names.size() ? names[index] : Names{};
  }

  // Without a place in a source, the JSON path says where.
  void Report(ErrorCode code, SourceSpan span, const std::string& path, const std::string& place,
              std::string message, std::string hint) {
    out_.push_back({.code = code,
                    .span = span,
                    .message = std::move(message),
                    .hint = std::move(hint),
                    .path = span.known() ? path : place});
  }
  void Report(ErrorCode code, SourceSpan span, const Scope& scope, const std::string& member,
              std::string message, std::string hint) {
    Report(code, span, scope.path, scope.place + member, std::move(message), std::move(hint));
  }

  static std::string Item(const char* list, std::size_t index, const std::string& member = "") {
    return "." + std::string(list) + "[" + std::to_string(index) + "]" + member;
  }

  // The ids that are good; the peer stops at the first that is not.
  Ids ValidateNodes(const Scope& scope) {
    Ids ids;
    ids.reserve(scope.graph.nodes.size());
    for (std::size_t i = 0; i < scope.graph.nodes.size(); ++i) {
      const SourceSpan statement = SpanAt(scope.graph.spans.nodes, i, scope.holder);
      ValidateNode(scope, i, SpanAt(scope.graph.spans.ids, i, statement), ids);
    }
    return ids;
  }

  void ValidateNode(const Scope& scope, std::size_t index, SourceSpan span, Ids& ids) {
    const Node& node = scope.graph.nodes[index];
    const std::string& id = NodeId(node);
    const auto report = [&](ErrorCode code, const char* member, std::string message,
                            std::string hint) {
      Report(code, span, scope, Item("nodes", index, member), std::move(message), std::move(hint));
    };
    if (IsBlank(id)) {
      report(errors::kIrNodeId, ".id",
             scope.path + " node id must be a non-empty string: " + SpecRepr(node),
             "give the node a name");
    } else if (ids.contains(id)) {
      report(errors::kIrDuplicateId, ".id", "Duplicate node id " + Quoted(id) + " in " + scope.path,
             "rename one of the two");
    } else if (IsSentinel(id)) {
      report(errors::kIrNodeId, ".id",
             scope.path + " node id " + Quoted(id) + " collides with a reserved sentinel",
             "rename the node");
    }
    ids.insert(id);
    const auto* builtin = std::get_if<BuiltinNode>(&node);
    if (builtin == nullptr || FindNodeType(builtin->type) != nullptr) return;
    report(errors::kIrUnknownType, ".type",
           "Unknown built-in node type " + Quoted(builtin->type) + " for " + scope.path + " node " +
               Quoted(id),
           NodeTypeHint(builtin->type));
  }

  void ValidateEntrypoint(const Scope& scope, const Ids& ids) {
    const Graph& graph = scope.graph;
    if (!scope.complete || ids.contains(graph.entrypoint)) return;
    const SourceSpan span = graph.spans.entrypoint.known() ? graph.spans.entrypoint : scope.holder;
    if (graph.entrypoint.empty()) {
      Report(errors::kIrEntrypoint, span, scope, ".entrypoint",
             scope.path + " entrypoint must be a non-empty node id", "name the node to start with");
      return;
    }
    Report(
        errors::kIrEntrypoint, span, scope, ".entrypoint",
        scope.path + " entrypoint " + Quoted(graph.entrypoint) + " does not reference a known node",
        IdHint(graph.entrypoint, ids));
  }

  static bool IsKnown(const std::string& vertex, const Ids& ids) {
    return ids.contains(vertex) || IsSentinel(vertex);
  }

  static std::string IdHint(std::string_view unknown, const Ids& ids) {
    if (unknown == "START" || unknown == "END") {
      return "write " + std::string(unknown) + " without quotes";
    }
    constexpr std::size_t kMany = 1000;  // a search through more would cost too much per error
    if (ids.size() <= kMany) {
      const std::vector<std::string_view> names(ids.begin(), ids.end());
      const std::string_view nearest = Nearest(unknown, names);
      if (!nearest.empty()) return "did you mean " + Quoted(nearest) + "?";
    }
    return "add a node of that id, or name one that exists";
  }

  void ReportUnknown(const Scope& scope, SourceSpan span, const std::string& member,
                     std::string message, std::string_view vertex, const Ids& ids) {
    Report(errors::kIrUnknownNode, span, scope, member, scope.path + std::move(message),
           IdHint(vertex, ids));
  }

  void ValidateEdges(const Scope& scope, const Ids& ids) {
    if (!scope.complete) return;
    const Graph& graph = scope.graph;
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      const Edge& edge = graph.edges[i];
      const SourceSpan span = SpanAt(graph.spans.edges, i, scope.holder);
      const EdgeNames names = NamesAt(graph.spans.edge_names, i);
      if (!IsKnown(edge.source, ids)) {
        ReportUnknown(scope, OrElse(names.source, span), Item("edges", i, ".source"),
                      " edge source " + Quoted(edge.source) + " references an unknown node",
                      edge.source, ids);
      }
      if (!IsKnown(edge.target, ids)) {
        ReportUnknown(scope, OrElse(names.target, span), Item("edges", i, ".target"),
                      " edge target " + Quoted(edge.target) + " references an unknown node",
                      edge.target, ids);
      }
    }
  }

  void ValidateConditionalEdges(const Scope& scope, const Ids& ids) {
    const Graph& graph = scope.graph;
    for (std::size_t i = 0; i < graph.conditional_edges.size(); ++i) {
      ValidateConditional(scope, i, SpanAt(graph.spans.conditional_edges, i, scope.holder),
                          NamesAt(graph.spans.conditional_names, i), ids);
    }
  }

  void ValidateConditional(const Scope& scope, std::size_t index, SourceSpan span,
                           const ConditionalNames& names, const Ids& ids) {
    const ConditionalEdge& edge = scope.graph.conditional_edges[index];
    const auto place = [&](const std::string& member) {
      return Item("conditional_edges", index, member);
    };
    if (scope.complete && !ids.contains(edge.source)) {
      ReportUnknown(
          scope, OrElse(names.source, span), place(".source"),
          " conditional edge source " + Quoted(edge.source) + " references an unknown node",
          edge.source, ids);
    }
    const std::string from = " conditional edge from " + Quoted(edge.source);
    if (edge.mapping.empty()) {
      Report(errors::kIrEmptyMapping, span, scope, place(".mapping"),
             scope.path + from + " requires a non-empty mapping",
             "map at least one value to a node, or use add_edge");
    }
    if (!scope.complete) return;
    for (std::size_t i = 0; i < edge.mapping.size(); ++i) {
      const auto& [value, target] = edge.mapping[i];
      if (IsKnown(target, ids)) continue;
      ReportUnknown(scope, SpanAt(names.targets, i, span), place(".mapping." + value),
                    from + " maps " + Quoted(value) + " to unknown target " + Quoted(target),
                    target, ids);
    }
    if (edge.default_target && !IsKnown(*edge.default_target, ids)) {
      ReportUnknown(scope, OrElse(names.default_target, span), place(".default"),
                    from + " has an unknown default target " + Quoted(*edge.default_target),
                    *edge.default_target, ids);
    }
  }

  void ValidateMembers(const json::Object& object, const ConfigStep* way,
                       const ConfigScope& scope) {
    for (const auto& [key, value] : object) {
      if (!value.is_object() && !value.is_array()) continue;
      const ConfigStep step{way, &key, 0};
      ValidateConfig(value, &step, scope);
    }
  }

  void ValidateConfig(const json::Value& value, const ConfigStep* way, const ConfigScope& scope) {
    if (value.is_object()) {
      const json::Value* kind = value.Find(kKindMarker);
      if (kind != nullptr && kind->is_string() && kind->as_string() == "workflow_tool") {
        return ValidateTool(value.as_object(), way, scope);
      }
      return ValidateMembers(value.as_object(), way, scope);
    }
    const json::Array& items = value.as_array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_object() && !items[i].is_array()) continue;
      const ConfigStep step{way, nullptr, i};
      ValidateConfig(items[i], &step, scope);
    }
  }

  void ValidateTool(const json::Object& marker, const ConfigStep* way, const ConfigScope& scope) {
    std::string steps;
    AppendSteps(way, steps);
    const std::string path = scope.path + steps + " workflow tool";
    const std::string place = scope.place + steps + ".graph";
    const json::Value* document = marker.Find("graph");
    if (document == nullptr || !document->is_object()) {
      Report(errors::kIrTool, scope.span, path, place, path + " requires a nested graph IR mapping",
             "compile the source again");
      return;
    }
    const auto known = hints_.tool_graphs.find(&document->as_object());
    if (known != hints_.tool_graphs.end()) {
      return Validate(*known->second, path, place, scope.depth + 1, scope.span);
    }
    if (scope.depth + 1 > kMaxGraphDepth) {
      return Validate(Graph{}, path, place, scope.depth + 1, scope.span);
    }
    const std::size_t before = out_.size();
    const std::shared_ptr<const Graph> graph = ReadGraphForm(*document, place, out_);
    for (std::size_t i = before; i < out_.size(); ++i) {
      out_[i].span = scope.span;
      if (scope.span.known()) out_[i].path = path;
    }
    if (graph != nullptr) Validate(*graph, path, place, scope.depth + 1, scope.span);
  }

  const ValidateHints& hints_;
  std::vector<Diagnostic>& out_;
};

}  // namespace

void ValidateGraph(const Graph& graph, std::vector<Diagnostic>& out, const ValidateHints& hints) {
  Validator(hints, out).Validate(graph, "IR", "$", 0, {});
}

}  // namespace caisson::workflow
