// SPDX-License-Identifier: Apache-2.0
// Runs every case of tests/golden/nodes, which the peer agreed with when they were written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "graph/run.h"
#include "json/reader.h"
#include "json/writer.h"
#include "workflow/ir.h"

namespace caisson::graph {
namespace {

std::shared_ptr<const workflow::Graph> GraphOf(const std::string& type, const json::Value& test) {
  auto graph = std::make_shared<workflow::Graph>();
  graph->entrypoint = "n";
  graph->nodes.push_back(workflow::BuiltinNode{"n", type, test.Find("config")->as_object()});
  if (const json::Value* before = test.Find("before")) {
    graph->entrypoint = "0";
    graph->nodes.push_back(
        workflow::BuiltinNode{"0", "SetVariableNode", json::Object{{"variables", *before}}});
    graph->edges.push_back({"0", "n"});
  }
  return graph;
}

// {"state": ...} or {"error": ...}
json::Value Outcome(const std::string& type, const json::Value& test) {
  const auto plan = Plan::Create(GraphOf(type, test));
  if (!plan) return json::Object{{"error", plan.error().message}};
  RunConfig config;
  config.run_id = "t";
  const auto result = Run(*plan, *test.Find("inputs"), config, {});
  if (!result) return json::Object{{"error", result.error().message}};
  if (!result->ok()) return json::Object{{"error", result->error->message}};
  return json::Object{{"state", result->state}};
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, cases_give_what_the_peer_gave) {
  std::ifstream file(std::string(CAISSON_TESTS_DIR) + "/golden/nodes/" + GetParam() + ".jsonl");
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    ++count;
    const auto test = json::Read(line);
    ASSERT_TRUE(test) << GetParam() << ":" << count;
    const json::Value outcome = Outcome(GetParam(), *test);
    for (const auto& [key, value] : outcome.as_object()) {
      const json::Value* expected = test->Find(key);
      ASSERT_NE(expected, nullptr) << GetParam() << ":" << count << ": " << *json::Write(outcome);
      EXPECT_EQ(*json::Write(value), *json::Write(*expected)) << GetParam() << ":" << count;
    }
  }
  EXPECT_GT(count, 0);
}

std::vector<std::string> Types() {
  std::vector<std::string> types;
  for (const nodes::NodeType* type : nodes::BuiltinNodes().types()) {
    // What needs servers or stores is compared with the peer only; who asks is tested with
    // resuming.
    if (type->need != nodes::Need::kNothing || type->name == "HumanInputNode") continue;
    types.emplace_back(type->name);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(Nodes, Golden, testing::ValuesIn(Types()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace caisson::graph
