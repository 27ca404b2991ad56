// SPDX-License-Identifier: Apache-2.0
#include "cli/drawing.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

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

// Texts that are syntax somewhere in Mermaid, HTML, Markdown or DOT.
const std::string kHostile[] = {
    "\"]; click n0 \"javascript:alert(1)\"",
    "a\nclick n0 call alert(1)",
    "a\r\nend\n%%{init: {'securityLevel': 'loose'}}%%",
    "%%{init: {}}%%",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &quot; #34; #quot;",
    "`**bold**`",
    "$$x^2$$ fa:fa-car",
    "]) --> ns",
    "|x| {{y}} ((z)) [/w/] \\N \\G",
    "\", URL=\"http://example.org\", label=\"",
    "\x1b[2J\xC2\x9B\u202E\u200B",
    "\xff\xfe",
    std::string("nul\0byte", 8),
    std::string(100'000, 'x'),
    "end",
    "subgraph x",
    "",
};

workflow::Graph Hostile(const std::string& text) {
  auto inner = std::make_shared<workflow::Graph>();
  inner->entrypoint = text;
  inner->nodes.emplace_back(workflow::BuiltinNode{text, text, {}});
  workflow::Graph graph;
  graph.entrypoint = "a" + text;
  graph.nodes.emplace_back(workflow::BuiltinNode{"a" + text, text, {}});
  graph.nodes.emplace_back(
      workflow::CodeNode{.id = "b" + text, .config = {}, .injected = {}, .body = "return {}"});
  graph.nodes.emplace_back(workflow::SubgraphNode{"c" + text, inner});
  graph.edges.push_back({"a" + text, "b" + text});
  graph.conditional_edges.push_back(
      {"b" + text, text, {{text, "c" + text}, {"y" + text, "__end__"}}, "a" + text});
  return graph;
}

void ExpectLines(const std::string& drawing, const std::regex& form) {
  std::istringstream lines(drawing);
  std::string line;
  while (std::getline(lines, line)) {
    EXPECT_TRUE(std::regex_match(line, form)) << line;
    EXPECT_LT(line.size(), 4000u);
  }
}

// What stands in quotes holds no quote, bracket or other syntax; only our <br/> and #..; codes.
TEST(Drawing, NothingOfAnIrBecomesSyntaxOfMermaid) {
  const std::string name = "n[0-9_]*[se]?";
  const std::string label = "\"(?:[^\"#<>&;:%$`|{}\\[\\]()\\\\\\x00-\\x1f\\x7f]|#[0-9]+;|<br/>)*\"";
  const std::regex form("flowchart TD| *(?:" + name + "(?:\\(\\[(?:START|END)\\]\\)|\\[" + label +
                        "\\]|\\[\\[" + label + "\\]\\])|subgraph " + name + "\\[" + label +
                        "\\]|end|" + name + " (?:-->|-\\.->\\|" + label + "\\|) " + name + ")");
  for (const std::string& text : kHostile) ExpectLines(DrawMermaid(Hostile(text)), form);
}

TEST(Drawing, NothingOfAnIrBecomesSyntaxOfDot) {
  const std::string name = "n[0-9_]*[se]?";
  const std::string label = "label=\"(?:[^\"\\\\&\\x00-\\x1f\\x7f]|\\\\[\"\\\\n]|&amp;)*\"";
  const std::regex form("digraph workflow \\{|  node \\[shape=box\\];| *(?:" + name + " \\[" +
                        label + "(?:, (?:shape=oval|peripheries=2))?\\];|subgraph cluster_" + name +
                        " \\{|" + label + ";|\\}|" + name + " -> " + name +
                        "(?: \\[style=dashed, " + label + "\\])?;)|\\}");
  for (const std::string& text : kHostile) ExpectLines(DrawDot(Hostile(text)), form);
}

}  // namespace
}  // namespace caisson::cli
