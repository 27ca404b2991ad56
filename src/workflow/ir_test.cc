// SPDX-License-Identifier: Apache-2.0
#include "workflow/ir.h"

#include <gtest/gtest.h>

#include "json/writer.h"
#include "workflow/loader.h"

namespace caisson::workflow {
namespace {

Graph SmallGraph() {
  Graph graph;
  graph.entrypoint = "a";
  graph.nodes.emplace_back(
      BuiltinNode{"a", "SetVariableNode", {{"z", 1}, {"b", json::Array{2.0}}}});
  graph.nodes.emplace_back(CodeNode{"c", {{"k", "é"}}, {"k"}, "return {}"});
  graph.edges.push_back({std::string(kStart), "a"});
  graph.conditional_edges.push_back({"a", "x.y", {{"1", "c"}, {"0", std::string(kEnd)}}, {}});
  return graph;
}

TEST(Ir, DumpsEveryFieldInTheOrderOfTheFormat) {
  EXPECT_EQ(
      CanonicalBytes(SmallGraph()).value_or(""),
      R"({"schema_version":1,"state_ref":"orcheo.graph.state.State","entrypoint":"a","nodes":[)"
      R"({"kind":"builtin","id":"a","type":"SetVariableNode","config":{"z":1,"b":[2.0]}},)"
      R"({"kind":"code","id":"c","config":{"k":"é"},"injected":["k"],"body":"return {}"}],)"
      R"("edges":[{"source":"__start__","target":"a"}],"conditional_edges":[{"source":"a",)"
      R"("path":"x.y","mapping":{"1":"c","0":"__end__"},"default":null}]})");
}

TEST(Ir, ContentIdIsTheSha256OfTheBytes) {
  Graph graph;
  graph.entrypoint = "a";
  // printf '<the bytes>' | sha256sum
  EXPECT_EQ(CanonicalBytes(graph).value_or(""),
            R"({"schema_version":1,"state_ref":"orcheo.graph.state.State","entrypoint":"a",)"
            R"("nodes":[],"edges":[],"conditional_edges":[]})");
  EXPECT_EQ(ContentId(graph).value_or(""),
            "314a4ab9312ba09a986efec47591805bf899190b94b22ee1b9dc3664904dbf7e");
}

TEST(Ir, SpansAreNoPartOfTheIdentity) {
  Graph graph = SmallGraph();
  const auto before = ContentId(graph);
  graph.spans.nodes = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(before.value_or("?"), ContentId(graph).value_or("!"));
}

TEST(Ir, KeyOrderIsPartOfTheIdentity) {
  Graph graph = SmallGraph();
  const auto before = ContentId(graph);
  std::get<BuiltinNode>(graph.nodes[0]).config = {{"b", json::Array{2.0}}, {"z", 1}};
  EXPECT_NE(before.value_or("?"), ContentId(graph).value_or("?"));
}

TEST(Ir, WhatJsonCannotHoldHasNoBytes) {
  Graph graph = SmallGraph();
  std::get<BuiltinNode>(graph.nodes[0]).config = {{"x", 1e308 * 10}};
  EXPECT_FALSE(CanonicalBytes(graph));
  EXPECT_FALSE(ContentId(graph));
}

}  // namespace
}  // namespace caisson::workflow
