// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.h"

#include <gtest/gtest.h>

#include "errors/config.h"
#include "errors/graph.h"
#include "errors/nodes.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

Status Refusal(workflow::Graph graph) {
  auto plan = MakePlan(std::move(graph));
  if (plan) {
    ADD_FAILURE() << "the plan was made";
    return {};
  }
  return plan.error();
}

TEST(Plan, refuses_graphs_that_cannot_be_built) {
  const auto two = [](std::vector<std::string> edges,
                      std::vector<workflow::ConditionalEdge> branches = {}) {
    return MakeGraph({Set("a", "{}"), Set("b", "{}")}, std::move(edges), std::move(branches));
  };
  const workflow::ConditionalEdge branch{"a", "x", {{"k", "b"}}, {}};
  const workflow::ConditionalEdge to_start{"a", "x", {{"k", "__start__"}}, {}};
  const workflow::ConditionalEdge no_path{"a", "", {{"k", "b"}}, {}};
  const std::pair<workflow::Graph, const char*> cases[] = {
      {two({"a>START"}), "START cannot be an end node"},
      {two({"END>a"}), "END cannot be a start node"},
      {two({"a>zz"}), "edge target 'zz' references an unknown node"},
      {two({"zz>a"}), "edge source 'zz' references an unknown node"},
      {two({}, {branch, branch}), "Branch with name `resolve` already exists for node `a`"},
      {two({}, {to_start}), "At 'a' node, 'resolve' branch found unknown target '__start__'"},
      {two({}, {no_path}), "requires a path string"},
      {MakeGraph({Set("a:b", "{}")}),
       "':' is a reserved character and is not allowed in the node names."},
      {MakeGraph({Set("a|b", "{}")}), "'|' is a reserved character"},
      {MakeGraph({Set("a", "{}"), Set("a", "{}")}), "duplicate node id 'a'"},
      {MakeGraph({Sub("s", two({"a>START"}))}), "START cannot be an end node"}};
  for (const auto& [graph, expected] : cases) {
    const Status status = Refusal(graph);
    EXPECT_EQ(status.code, errors::kGraphBuild);
    EXPECT_NE(status.message.find(expected), std::string::npos) << status.message;
  }
}

TEST(Plan, names_every_node_that_is_not_native) {
  auto inner = MakeGraph({Native("fetch", "SlackNode", "{}")});
  const Status status = Refusal(MakeGraph(
      {Native("agent", "DeepAgentNode",
              "{'workflow_tools': [{'__orcheo_ir_kind__': 'workflow_tool', 'name': 't', 'graph':"
              "{'nodes': [{'kind': 'builtin', 'id': 'mail', 'type': 'WebSearchNode', 'config': {}},"
              "{'kind': 'builtin', 'id': 'ok', 'type': 'NoOpTaskNode', 'config': {}}]}}]}"),
       Sub("outer", std::move(inner)),
       Native("steps", "SubWorkflowNode",
              "{'steps': [{'type': 'NoOpTaskNode'},"
              "{'type': 'QueryClassifierNode'}, {'type': '{{inputs.t}}'}]}")}));
  EXPECT_EQ(status.code, errors::kGraphNotNative);
  for (const char* expected :
       {"DeepAgentNode (node 'agent')",
        "WebSearchNode (node 'mail' in node 'agent' workflow_tools, tool 't')",
        "SlackNode (node 'fetch' in subgraph 'outer')",
        "QueryClassifierNode (step 2 in node 'steps')"}) {
    EXPECT_NE(status.message.find(expected), std::string::npos) << status.message;
  }
  EXPECT_EQ(status.message.find("inputs.t"), std::string::npos) << "known only when it runs";
}

TEST(Plan, names_every_step_whose_type_does_not_exist) {
  auto inner =
      MakeGraph({Native("deep", "SubWorkflowNode",
                        "{'steps': [{'type': 'SubWorkflowNode', 'steps': [{'type': ''}]}]}")});
  const Status status = Refusal(MakeGraph(
      {Native("tools", "DeepAgentNode",
              "{'workflow_tools': [{'__orcheo_ir_kind__': 'workflow_tool', 'name': 't', 'graph':"
              "{'nodes': [{'kind': 'builtin', 'id': 'w', 'type': 'SubWorkflowNode', 'config':"
              "{'steps': [{'type': 'Nil'}]}}]}}]}"),
       Sub("outer", std::move(inner)),
       Native("steps", "SubWorkflowNode",
              "{'steps': [{'type': 'NoOpTaskNode'}, {'type': 'Nope'}, {'type': 5}, '{{inputs.s}}',"
              "{'type': '{{inputs.t}}'}]}")}));
  EXPECT_EQ(status.code, errors::kConfigUnknownStepType);
  EXPECT_EQ(
      status.message,
      "these steps have no type that exists: 'Nil' (step 1 in node 'tools' workflow_tools, "
      "tool 't', node 'w'); no type (step 1 in subgraph 'outer', node 'deep', step 1); 'Nope' "
      "(step 2 in node 'steps'); no type (step 3 in node 'steps').");
  EXPECT_NE(status.details.find("AgentNode (node 'tools')"), std::string::npos) << status.details;
}

TEST(Plan, refuses_a_configuration_with_every_fault_and_its_path) {
  const Status status = Refusal(MakeGraph({Native(
      "m", "MergeNode", "{'items': {}, 'mode': 'x', 'deep': 'maybe', 'deduplicate': 'yes'}")}));
  EXPECT_EQ(status.code, errors::kNodesConfig);
  EXPECT_EQ(status.message,
            "Failed to construct node 'm' of type 'MergeNode': $.config.items: must be a list, not "
            "dict; $.config.mode: must be one of 'auto', 'dict' or 'list', not 'x'; $.config.deep: "
            "must be true or false, not 'maybe'");
}

TEST(Plan, refuses_a_body_that_breaks_a_rule) {
  const Status status = Refusal(MakeGraph({Code("c", "import os\nreturn {}")}));
  EXPECT_EQ(status.code, errors::kGraphBody);
  EXPECT_NE(status.details.find("body may not import modules"), std::string::npos)
      << status.details;
}

TEST(Plan, refuses_nesting_beyond_its_limit) {
  workflow::Graph graph = MakeGraph({Set("a", "{}")});
  for (int i = 0; i < 40; ++i) graph = MakeGraph({Sub("s", std::move(graph))});
  EXPECT_NE(Refusal(std::move(graph)).message.find("depth exceeds the maximum"), std::string::npos);
}

TEST(Plan, counts_nodes_and_knows_whether_it_needs_a_runtime) {
  auto inner = MakeGraph({Code("c", "return {}")});
  const auto plan = MakePlan(MakeGraph({Set("a", "{}"), Sub("s", std::move(inner))}));
  ASSERT_TRUE(plan) << plan.error().message << plan.error().details;
  EXPECT_EQ(plan->node_count(), 3u);
  EXPECT_TRUE(!plan->code_nodes().empty());
  const auto result = graph::Run(*plan, json::Object(), {}, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errors::kGraphNoRuntime);
}

}  // namespace
}  // namespace caisson::graph
