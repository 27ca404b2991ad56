// SPDX-License-Identifier: Apache-2.0
#include "cli/drawing.h"

#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

workflow::Graph Sample() {
  auto inner = std::make_shared<workflow::Graph>();
  inner->entrypoint = "i";
  inner->nodes.emplace_back(workflow::BuiltinNode{"i", "NoOpTaskNode", {}});
  workflow::Graph graph;
  graph.entrypoint = "route";
  graph.nodes.emplace_back(workflow::BuiltinNode{"route", "SetVariableNode", {}});
  graph.nodes.emplace_back(
      workflow::CodeNode{.id = "say \"hi\"]", .config = {}, .injected = {}, .body = "return {}"});
  graph.nodes.emplace_back(workflow::SubgraphNode{"inner", inner});
  graph.edges.push_back({"say \"hi\"]", "__end__"});
  graph.edges.push_back({"inner", "__end__"});
  graph.conditional_edges.push_back(
      {"route", "inputs.kind", {{"a", "say \"hi\"]"}, {"b", "inner"}}, "__end__"});
  return graph;
}

TEST(Drawing, MermaidShowsNodesGroupsAndConditions) {
  EXPECT_EQ(DrawMermaid(Sample()),
            "flowchart TD\n"
            "  ns([START])\n"
            "  n0[\"route<br/>SetVariableNode\"]\n"
            "  n1[[\"say #34;hi#34;#93;<br/>code\"]]\n"
            "  subgraph n2[\"inner\"]\n"
            "    n2_s([START])\n"
            "    n2_0[\"i<br/>NoOpTaskNode\"]\n"
            "    n2_e([END])\n"
            "    n2_s --> n2_0\n"
            "    n2_0 --> n2_e\n"
            "  end\n"
            "  ne([END])\n"
            "  n1 --> ne\n"
            "  n2_e --> ne\n"
            "  ns --> n0\n"
            "  n0 -.->|\"inputs.kind = a\"| n1\n"
            "  n0 -.->|\"inputs.kind = b\"| n2_s\n"
            "  n0 -.->|\"else\"| ne\n");
}

TEST(Drawing, DotEscapesLabels) {
  EXPECT_EQ(DrawDot(Sample()),
            "digraph workflow {\n"
            "  node [shape=box];\n"
            "  ns [label=\"START\", shape=oval];\n"
            "  n0 [label=\"route\\nSetVariableNode\"];\n"
            "  n1 [label=\"say \\\"hi\\\"]\\ncode\", peripheries=2];\n"
            "  subgraph cluster_n2 {\n"
            "    label=\"inner\";\n"
            "    n2_s [label=\"START\", shape=oval];\n"
            "    n2_0 [label=\"i\\nNoOpTaskNode\"];\n"
            "    n2_e [label=\"END\", shape=oval];\n"
            "    n2_s -> n2_0;\n"
            "    n2_0 -> n2_e;\n"
            "  }\n"
            "  ne [label=\"END\", shape=oval];\n"
            "  n1 -> ne;\n"
            "  n2_e -> ne;\n"
            "  ns -> n0;\n"
            "  n0 -> n1 [style=dashed, label=\"inputs.kind = a\"];\n"
            "  n0 -> n2_s [style=dashed, label=\"inputs.kind = b\"];\n"
            "  n0 -> ne [style=dashed, label=\"else\"];\n"
            "}\n");
}

}  // namespace
}  // namespace caisson::cli
