// SPDX-License-Identifier: Apache-2.0
#include "workflow/ir.h"

#include <memory>
#include <utility>

#include "base/digest/sha256.h"
#include "json/writer.h"

namespace caisson::workflow {
namespace {

json::Value Strings(const std::vector<std::string>& items) {
  json::Array array;
  array.reserve(items.size());
  for (const std::string& item : items) array.emplace_back(item);
  return array;
}

struct NodeToJson {
  json::Value operator()(const BuiltinNode& node) const {
    return json::Object{
        {"kind", "builtin"}, {"id", node.id}, {"type", node.type}, {"config", node.config}};
  }
  json::Value operator()(const CodeNode& node) const {
    return json::Object{{"kind", "code"},
                        {"id", node.id},
                        {"config", node.config},
                        {"injected", Strings(node.injected)},
                        {"body", node.body}};
  }
  json::Value operator()(const SubgraphNode& node) const {
    return json::Object{{"kind", "subgraph"}, {"id", node.id}, {"graph", ToJson(*node.graph)}};
  }
};

json::Value EdgeToJson(const ConditionalEdge& edge) {
  json::Object mapping;
  mapping.Reserve(edge.mapping.size());
  for (const auto& [key, target] : edge.mapping) mapping.Set(key, target);
  json::Value fallback;
  if (edge.default_target) fallback = *edge.default_target;
  return json::Object{{"source", edge.source},
                      {"path", edge.path},
                      {"mapping", std::move(mapping)},
                      {"default", std::move(fallback)}};
}

}  // namespace

const std::string& NodeId(const Node& node) {
  return std::visit([](const auto& each) -> const std::string& { return each.id; }, node);
}

json::Value ToJson(const Graph& graph) {
  json::Array nodes, edges, conditional_edges;
  nodes.reserve(graph.nodes.size());
  edges.reserve(graph.edges.size());
  conditional_edges.reserve(graph.conditional_edges.size());
  for (const Node& node : graph.nodes) nodes.push_back(std::visit(NodeToJson{}, node));
  for (const Edge& edge : graph.edges) {
    edges.emplace_back(json::Object{{"source", edge.source}, {"target", edge.target}});
  }
  for (const ConditionalEdge& edge : graph.conditional_edges) {
    conditional_edges.push_back(EdgeToJson(edge));
  }
  return json::Object{
      {"schema_version", kSchemaVersion}, {"state_ref", graph.state_ref},
      {"entrypoint", graph.entrypoint},   {"nodes", std::move(nodes)},
      {"edges", std::move(edges)},        {"conditional_edges", std::move(conditional_edges)}};
}

Result<std::string> CanonicalBytes(const Graph& graph) { return json::Write(ToJson(graph)); }

Result<std::string> ContentId(const Graph& graph) {
  CAISSON_ASSIGN(const std::string bytes, CanonicalBytes(graph));
  return digest::Sha256Hex(bytes);
}

}  // namespace caisson::workflow
