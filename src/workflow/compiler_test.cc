// SPDX-License-Identifier: Apache-2.0
// What golden files cannot say: limits, options, sizes.
#include "workflow/compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "errors/policy.h"
#include "errors/schema.h"
#include "errors/workflow.h"
#include "workflow/ir.h"
#include "workflow/shape.h"

namespace caisson::workflow {
namespace {

std::string Workflow(std::string_view body) {
  return "def orcheo_workflow():\n    graph = StateGraph(State)\n" + std::string(body) +
         "    return graph\n";
}

std::string Node(std::string_view id, std::string_view node = "NoOpTaskNode()") {
  return "    graph.add_node('" + std::string(id) + "', " + std::string(node) + ")\n";
}

const Diagnostic* FirstError(const CompileResult& result) {
  const auto found = std::ranges::find(result.diagnostics, Severity::kError, &Diagnostic::severity);
  return found == result.diagnostics.end() ? nullptr : &*found;
}

void ExpectRefused(const std::string& source, ErrorCode code) {
  const CompileResult result = Compile(source);
  ASSERT_FALSE(result.ok());
  ASSERT_NE(FirstError(result), nullptr);
  EXPECT_EQ(FirstError(result)->code.name, code.name) << FirstError(result)->message;
}

TEST(Compile, AcceptsASourceOfTheGreatestSizeAndRefusesOneByteMore) {
  std::string source = Workflow(Node("a") + "    graph.set_entry_point('a')\n");
  source += "#" + std::string(kMaxSourceBytes - source.size() - 1, 'x');
  EXPECT_TRUE(Compile(source).ok());
  ExpectRefused(source + "x", errors::kWorkflowTooLarge);
}

TEST(Compile, RefusesBytesThatAreNoText) {
  ExpectRefused("'\xff\xfe'\n", errors::kWorkflowParse);
  ExpectRefused(std::string("\0\0\0", 3), errors::kWorkflowParse);
  ExpectRefused(
      "\x7f"
      "ELF\x02\x01\x01",
      errors::kWorkflowParse);
}

TEST(Compile, CountsWarningsAsErrorsWhenStrict) {
  const std::string source = Workflow(Node("a") + Node("b") + "    graph.set_entry_point('a')\n");
  const CompileResult lenient = Compile(source);
  EXPECT_TRUE(lenient.ok());
  ASSERT_EQ(lenient.diagnostics.size(), 1u);
  EXPECT_EQ(lenient.diagnostics[0].code.name, errors::kWorkflowUnreachableNode.name);
  const CompileResult strict = Compile(source, {.strict = true});
  EXPECT_FALSE(strict.ok());
  EXPECT_EQ(strict.diagnostics[0].severity, Severity::kError);
}

TEST(Compile, LetsTrustedSourcesUseRestrictedNodes) {
  const std::string source =
      Workflow(Node("a", "BrowserCloseNode()") +
               Node("b", "SubWorkflowNode(steps=[{'type': 'BrowserCloseNode'}])") +
               "    graph.add_edge(START, 'a')\n    graph.add_edge('a', 'b')\n");
  ExpectRefused(source, errors::kPolicyNodeRestricted);
  EXPECT_TRUE(Compile(source, {.enforce_node_policy = false}).ok());
}

TEST(Compile, NamesTheSchemasOfToolsAndResponseFormats) {
  const std::string source =
      "class Answer(BaseModel):\n    text: str\n\n\n" +
      Workflow(
          "    inner = StateGraph(State)\n    inner.add_node('i', NoOpTaskNode())\n"
          "    inner.set_entry_point('i')\n" +
          Node("a",
               "AgentNode(ai_model='m', response_format=Answer, workflow_tools=[WorkflowTool("
               "name='look', description='d', graph=inner, args_schema={'type': 'object'})])") +
          "    graph.set_entry_point('a')\n");
  const CompileResult result = Compile(source);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.schemas.size(), 2u);
  EXPECT_EQ(result.schemas[0].first, "a.response_format");
  EXPECT_EQ(result.schemas[0].second.Find("title")->as_string(), "Answer");
  EXPECT_EQ(result.schemas[1].first, "a.workflow_tools.look");
}

TEST(Compile, PutsThePeersErrorFirstAndTheOthersInTheOrderOfTheSource) {
  const CompileResult result =
      Compile("x = 1\n" + Workflow(Node("a", "Nope()") + "    y = z[0]()\n"));
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(std::ranges::is_sorted(result.diagnostics.begin() + 1, result.diagnostics.end(), {},
                                     [](const Diagnostic& d) { return d.span.line; }));
  EXPECT_EQ(result.diagnostics[0].span.line, 1u);

  // The peer's first error need not be the topmost: its checks run in phases.
  const CompileResult phases = Compile(Workflow(Node("a", "Nope()")) + "x = 1\n");
  ASSERT_EQ(phases.diagnostics.size(), 3u);
  EXPECT_EQ(phases.diagnostics[0].span.line, 5u);
  EXPECT_EQ(phases.diagnostics[1].span.line, 2u);
  EXPECT_EQ(phases.diagnostics[2].span.line, 3u);
}

// Each graph holds the one before it twice.
std::string Doubling(int levels) {
  std::string body;
  for (int i = 0; i < levels; ++i) {
    const std::string graph = "g" + std::to_string(i);
    const std::string node = i == 0 ? "NoOpTaskNode()" : "g" + std::to_string(i - 1);
    body += fmt::format(
        "    {0} = StateGraph()\n"
        "    {0}.add_node('a', {1})\n"
        "    {0}.add_node('b', {1})\n"
        "    {0}.add_edge(START, 'a')\n"
        "    {0}.add_edge('a', 'b')\n",
        graph, node);
  }
  return Workflow(body + Node("x", "g" + std::to_string(levels - 1)) +
                  "    graph.add_edge(START, 'x')\n");
}

TEST(Compile, CompilesAHundredThousandNodes) {
  const CompileResult result = Compile(Doubling(16));  // 65,536 leaves and their graphs
  ASSERT_TRUE(result.ok()) << FirstError(result)->message;
  EXPECT_TRUE(result.diagnostics.empty());
}

TEST(Compile, RefusesGraphsThatGrowBeyondMeasureWhenWrittenOut) {
  ExpectRefused(Doubling(31), errors::kWorkflowGraphTooLarge);
}

TEST(Compile, RefusesSharedBodiesThatGrowBeyondMeasureWhenWrittenOut) {
  std::string source = "class C(CodeNode):\n    def run(self, state, config):\n";
  for (int i = 0; i < 10'000; ++i) source += "        x" + std::to_string(i) + " = 1\n";
  source += "        return {}\n\n\n";
  std::string nodes;
  for (int i = 0; i < 5'000; ++i) nodes += Node("n" + std::to_string(i), "C()");
  ExpectRefused(source + Workflow(nodes + "    graph.set_entry_point('n0')\n"),
                errors::kWorkflowGraphTooLarge);
}

TEST(Compile, EndsOnHelpersThatUseOneAnotherBeyondMeasure) {
  std::string source;
  for (int i = 0; i < 2'000; ++i) {
    source += "def h" + std::to_string(i) +
              "():\n    g = StateGraph()\n    g.add_node('a', AgentNode(ai_model='m', "
              "workflow_tools=[WorkflowTool(name='t', description='d', graph=h" +
              std::to_string(i + 1) + "())]))\n    g.set_entry_point('a')\n    return g\n\n\n";
  }
  source +=
      "def h2000():\n    g = StateGraph()\n    g.add_node('a', NoOpTaskNode())\n"
      "    g.set_entry_point('a')\n    return g\n\n\n";
  source += Workflow(Node("x",
                          "AgentNode(ai_model='m', workflow_tools=[WorkflowTool(name='t', "
                          "description='d', graph=h0())])") +
                     "    graph.set_entry_point('x')\n");
  EXPECT_FALSE(Compile(source).ok());
}

TEST(Compile, EndsOnChainsOfAnyLength) {
  for (const std::string_view link : {".a", "[0]", "()", "+1", " if x else y"}) {
    std::string expression = "x";
    while (expression.size() < 400'000) expression += link;
    EXPECT_FALSE(Compile(Workflow(Node("a", expression))).ok()) << link;
  }
}

// A chain of schema classes S0 -> S1 -> ... and an agent that uses the first.
std::string SchemaChain(int length) {
  std::string source;
  for (int i = 0; i < length; ++i) {
    source +=
        "class S" + std::to_string(i) + "(BaseModel):\n    a: S" + std::to_string(i + 1) + "\n";
  }
  source += "class S" + std::to_string(length) + "(BaseModel):\n    a: int\n";
  return source + Workflow(Node("a", "AgentNode(ai_model='x', response_format=S0)") +
                           "    graph.set_entry_point('a')\n");
}

TEST(Compile, BoundsChainsOfSchemas) {
  EXPECT_TRUE(Compile(SchemaChain(90)).ok());
  ExpectRefused(SchemaChain(101), errors::kSchemaTooLarge);
  ExpectRefused(SchemaChain(9'000), errors::kSchemaTooLarge);
}

TEST(Compile, BoundsTheMembersOfAUnionButNotOfALiteral) {
  std::string members = "int";
  std::string values = "0";
  for (int i = 0; i < 300; ++i) members += " | Literal[" + std::to_string(i) + "]";
  for (int i = 1; i < 60'000; ++i) values += "," + std::to_string(i);
  const auto source = [](const std::string& annotation) {
    return "class S(BaseModel):\n    a: " + annotation + "\n" +
           Workflow(Node("a", "AgentNode(ai_model='x', response_format=S)") +
                    "    graph.set_entry_point('a')\n");
  };
  ExpectRefused(source(members), errors::kSchemaTooLarge);
  EXPECT_TRUE(Compile(source("Literal[" + values + "]")).ok());
}

TEST(Compile, ShowsTheFirstOfVeryManyMistakes) {
  std::string source;
  for (int i = 0; i < 100'000; ++i) source += "a;";
  const CompileResult result = Compile(source + "\n");
  EXPECT_FALSE(result.ok());
  ASSERT_EQ(result.diagnostics.size(), 501u);
  EXPECT_EQ(result.diagnostics.back().code, errors::kWorkflowTooManyDiagnostics);
  EXPECT_FALSE(Render(result.diagnostics, "f.py", source, DiagnosticFormat::kText).empty());
}

TEST(Shape, TakesAHundredThousandNodesInOneGraph) {
  constexpr int kNodes = 100'000;
  Graph graph;
  graph.entrypoint = "0";
  for (int i = 0; i < kNodes; ++i) {
    graph.nodes.push_back(BuiltinNode{std::to_string(i), "NoOpTaskNode", {}});
    graph.edges.push_back({std::to_string(i), std::to_string(i + 1)});
    graph.edges.push_back({std::to_string(i), std::to_string(i + 2)});
  }
  graph.nodes.push_back(BuiltinNode{"alone", "NoOpTaskNode", {}});
  std::vector<Diagnostic> found;
  WarnOfShape(graph, found);
  const auto unreachable = [](const Diagnostic& diagnostic) {
    return diagnostic.code == errors::kWorkflowUnreachableNode;
  };
  EXPECT_EQ(std::ranges::count_if(found, unreachable), 1);
  EXPECT_GT(found.size(), 1u);
}

}  // namespace
}  // namespace caisson::workflow
