// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "graph/test_support.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::graph {
namespace {

[[noreturn]] void Die(const Status& status) {
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(status.code.name.size()),
               status.code.name.data(), status.message.c_str());
  std::abort();
}

std::string Vertex(std::string_view name) {
  if (name == "START") return std::string(workflow::kStart);
  if (name == "END") return std::string(workflow::kEnd);
  return std::string(name);
}

}  // namespace

json::Value J(std::string text) {
  std::ranges::replace(text, '\'', '"');
  auto value = json::Read(text);
  if (!value) Die(value.error());
  return *std::move(value);
}

workflow::Node Native(std::string id, std::string type, std::string config) {
  return workflow::BuiltinNode{std::move(id), std::move(type), J(std::move(config)).as_object()};
}

workflow::Node Set(std::string id, std::string variables) {
  return Native(std::move(id), "SetVariableNode", "{'variables': " + std::move(variables) + "}");
}

workflow::Node Code(std::string id, std::string body, std::string config) {
  workflow::CodeNode node{std::move(id), J(std::move(config)).as_object(), {}, std::move(body)};
  for (const auto& [key, value] : node.config) node.injected.push_back(key);
  std::ranges::sort(node.injected);
  return node;
}

workflow::Node Sub(std::string id, workflow::Graph graph) {
  return workflow::SubgraphNode{std::move(id),
                                std::make_shared<const workflow::Graph>(std::move(graph))};
}

workflow::Graph MakeGraph(std::vector<workflow::Node> nodes, const std::vector<std::string>& edges,
                          std::vector<workflow::ConditionalEdge> branches) {
  workflow::Graph graph;
  graph.entrypoint = std::visit([](const auto& node) { return node.id; }, nodes.front());
  graph.nodes = std::move(nodes);
  for (const std::string& edge : edges) {
    const std::size_t arrow = edge.find('>');
    graph.edges.push_back({Vertex(edge.substr(0, arrow)), Vertex(edge.substr(arrow + 1))});
  }
  graph.conditional_edges = std::move(branches);
  return graph;
}

Result<Plan> MakePlan(workflow::Graph graph) {
  return Plan::Create(std::make_shared<const workflow::Graph>(std::move(graph)));
}

RunResult RunIt(workflow::Graph graph, std::string inputs, const RunConfig& config,
                const Services& services) {
  const auto plan = MakePlan(std::move(graph));
  if (!plan) Die(plan.error());
  auto result = Run(*plan, J(std::move(inputs)), config, services);
  if (!result) Die(result.error());
  return *std::move(result);
}

std::string Text(const json::Value& value) {
  const auto text = json::Write(value);
  if (!text) Die(text.error());
  return *text;
}

std::string Entry(const RunResult& result, std::string_view id) {
  const json::Value* entry = result.state.Find("node_results")->Find(id);
  return entry != nullptr ? Text(*entry) : "";
}

isolate::Outcome Value(json::Value value) {
  isolate::Outcome outcome;
  outcome.value = std::move(value);
  return outcome;
}

isolate::Outcome FaultOf(isolate::Fault fault, std::string message) {
  isolate::Outcome outcome;
  outcome.fault = fault;
  outcome.message = std::move(message);
  return outcome;
}

std::string Recorder::Lines() const {
  std::string lines;
  for (const json::Value& event : events) {
    lines += event.Find("event")->as_string();
    if (const json::Value* node = event.Find("node")) lines += " " + node->as_string();
    if (const json::Value* step = event.Find("step")) lines += " " + Text(*step);
    lines += "\n";
  }
  return lines;
}

}  // namespace caisson::graph
