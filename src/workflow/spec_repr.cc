// SPDX-License-Identifier: Apache-2.0
#include "workflow/spec_repr.h"

#include <string_view>
#include <variant>

#include "json/writer.h"

namespace caisson::workflow {
namespace {

// Python's repr of a str; what lies beyond ASCII is taken as printable.
std::string Quote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      (out += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    } else if (byte < 0x20 || byte == 0x7F) {
      ((out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += quote;
}

std::string Repr(const json::Object& object);

std::string Repr(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kNull:
      return "None";
    case json::Value::Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case json::Value::Kind::kInt:
      return std::to_string(value.as_int());
    case json::Value::Kind::kBigInt:
      return value.as_bigint();
    case json::Value::Kind::kDouble:
      return json::FormatDouble(value.as_double());
    case json::Value::Kind::kString:
      return Quote(value.as_string());
    case json::Value::Kind::kObject:
      return Repr(value.as_object());
    case json::Value::Kind::kArray:
      break;
  }
  std::string out = "[";
  for (const json::Value& item : value.as_array()) {
    if (out.size() > 1) out += ", ";
    out += Repr(item);
  }
  return out += "]";
}

std::string Repr(const json::Object& object) {
  std::string out = "{";
  for (const auto& [key, value] : object) {
    if (out.size() > 1) out += ", ";
    out += Quote(key) + ": " + Repr(value);
  }
  return out += "}";
}

template <typename T, typename Show>
std::string ReprList(const std::vector<T>& items, Show show) {
  std::string out = "[";
  for (const T& item : items) {
    if (out.size() > 1) out += ", ";
    out += show(item);
  }
  return out += "]";
}

std::string ShowEdge(const Edge& edge) {
  return "EdgeSpec(source=" + Quote(edge.source) + ", target=" + Quote(edge.target) + ")";
}

std::string ShowConditional(const ConditionalEdge& edge) {
  json::Object mapping;
  for (const auto& [key, target] : edge.mapping) mapping.Set(key, target);
  return "ConditionalEdgeSpec(source=" + Quote(edge.source) + ", path=" + Quote(edge.path) +
         ", mapping=" + Repr(mapping) +
         ", default=" + (edge.default_target ? Quote(*edge.default_target) : "None") + ")";
}

std::string ShowGraph(const Graph& graph) {
  return "GraphIR(schema_version=" + std::to_string(kSchemaVersion) +
         ", state_ref=" + Quote(graph.state_ref) + ", entrypoint=" + Quote(graph.entrypoint) +
         ", nodes=" + ReprList(graph.nodes, SpecRepr) +
         ", edges=" + ReprList(graph.edges, ShowEdge) +
         ", conditional_edges=" + ReprList(graph.conditional_edges, ShowConditional) + ")";
}

struct ShowNode {
  std::string operator()(const BuiltinNode& node) const {
    return "BuiltinNodeSpec(kind='builtin', id=" + Quote(node.id) + ", type=" + Quote(node.type) +
           ", config=" + Repr(node.config) + ")";
  }
  std::string operator()(const CodeNode& node) const {
    const auto show = [](const std::string& name) { return Quote(name); };
    return "CodeNodeSpec(kind='code', id=" + Quote(node.id) + ", config=" + Repr(node.config) +
           ", injected=" + ReprList(node.injected, show) + ", body=" + Quote(node.body) + ")";
  }
  std::string operator()(const SubgraphNode& node) const {
    return "SubgraphNodeSpec(kind='subgraph', id=" + Quote(node.id) +
           ", graph=" + ShowGraph(*node.graph) + ")";
  }
};

}  // namespace

std::string SpecRepr(const Node& node) { return std::visit(ShowNode{}, node); }

}  // namespace caisson::workflow
