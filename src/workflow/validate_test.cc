// SPDX-License-Identifier: Apache-2.0
#include "workflow/validate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace caisson::workflow {
namespace {

std::shared_ptr<Graph> Small() {
  auto graph = std::make_shared<Graph>();
  graph->entrypoint = "a";
  graph->nodes.emplace_back(BuiltinNode{"a", "NoOpTaskNode", {}});
  return graph;
}

TEST(Validate, PointsAtTheNodeOrEdgeThatIsWrong) {
  auto graph = Small();
  graph->nodes.emplace_back(BuiltinNode{"a", "NoOpTaskNode", {}});
  graph->edges.push_back({"a", "b"});
  graph->spans.nodes = {{1, 0, 1, 5}, {2, 0, 2, 5}};
  graph->spans.edges = {{3, 0, 3, 5}};
  std::vector<Diagnostic> found;
  ValidateGraph(*graph, found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].message, "Duplicate node id 'a' in IR");
  EXPECT_EQ(found[0].span.line, 2u);
  EXPECT_EQ(found[1].message, "IR edge target 'b' references an unknown node");
  EXPECT_EQ(found[1].span.line, 3u);
  EXPECT_EQ(found[1].peer_line, 0u);
}

TEST(Validate, PointsAtTheHolderWhereAnInnerGraphHasNoSpans) {
  auto inner = Small();
  inner->entrypoint = "q";
  auto graph = Small();
  graph->nodes.emplace_back(SubgraphNode{"s", inner});
  graph->spans.nodes = {{1, 0, 1, 5}, {7, 0, 7, 5}};
  std::vector<Diagnostic> found;
  ValidateGraph(*graph, found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "IR subgraph 's' entrypoint 'q' does not reference a known node");
  EXPECT_EQ(found[0].span.line, 7u);
  EXPECT_EQ(found[0].path, "IR subgraph 's'");
}

TEST(Validate, UsesTheToolGraphThatTheCompilerKnows) {
  auto inner = Small();
  inner->edges.push_back({"a", "x"});
  inner->spans.edges = {{9, 0, 9, 5}};
  const json::Value document = ToJson(*inner);
  json::Object marker{{std::string(kKindMarker), "workflow_tool"}, {"graph", document}};
  auto graph = Small();
  graph->nodes.emplace_back(
      BuiltinNode{"t", "AgentNode", {{"workflow_tools", json::Array{marker}}}});
  std::vector<Diagnostic> found;
  ValidateHints hints;
  hints.tool_graphs[&document.as_object()] = inner;
  ValidateGraph(*graph, found, hints);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].span.line, 9u);
  EXPECT_EQ(found[0].message,
            "IR node 't' config.workflow_tools[0] workflow tool edge target 'x' references an "
            "unknown node");
}

TEST(Validate, SaysNothingOfNodesThatAnIncompleteGraphLacks) {
  auto graph = Small();
  graph->entrypoint = "gone";
  graph->edges.push_back({"gone", "a"});
  graph->conditional_edges.push_back({"gone", "p", {}, {}});
  ValidateHints hints;
  hints.incomplete.insert(graph.get());
  std::vector<Diagnostic> found;
  ValidateGraph(*graph, found, hints);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "IR conditional edge from 'gone' requires a non-empty mapping");
}

TEST(Validate, KnowsEveryBlankOfPython) {
  for (const char* id : {"", " ", "\t\n", "\u00a0", "\u2003\u3000", "\x1c", "\x1f \u2028"}) {
    auto graph = Small();
    graph->nodes.emplace_back(BuiltinNode{id, "NoOpTaskNode", {}});
    std::vector<Diagnostic> found;
    ValidateGraph(*graph, found);
    EXPECT_EQ(found.size(), 1u) << '"' << id << '"';
  }
  for (const char* id : {"\u200b", "\x1b", "a "}) {
    auto graph = Small();
    graph->nodes.emplace_back(BuiltinNode{id, "NoOpTaskNode", {}});
    std::vector<Diagnostic> found;
    ValidateGraph(*graph, found);
    EXPECT_TRUE(found.empty()) << '"' << id << '"';
  }
}

}  // namespace
}  // namespace caisson::workflow
