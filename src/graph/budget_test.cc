// SPDX-License-Identifier: Apache-2.0
#include "graph/budget.h"

#include <gtest/gtest.h>

#include <string>

#include "errors/template.h"
#include "graph/reducer.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

constexpr std::size_t kMiB = 1u << 20;

RunConfig WithState(std::size_t bytes) {
  RunConfig config;
  config.state_bytes = bytes;
  return config;
}

// {"t": a text of `bytes` bytes}
std::string Inputs(std::size_t bytes) { return R"({"t": ")" + std::string(bytes, 'x') + "\"}"; }

// A node that holds the input's text `copies` times.
workflow::Node Copies(const std::string& id, int copies) {
  std::string list;
  for (int i = 0; i < copies; ++i) list += list.empty() ? "'{{inputs.t}}'" : ", '{{inputs.t}}'";
  return Set(id, "{'x': [" + list + "]}");
}

TEST(Weigh, counts_shared_parts_each_time) {
  const json::Value text(std::string(1000, 'x'));
  EXPECT_GE(Weigh(text), 1000u);
  EXPECT_GE(Weigh(json::Array{text, text, text}), 3000u);
  EXPECT_LT(Weigh(json::Array{text, text, text}), 4000u);
}

TEST(Budget, refuses_what_exceeds_it_and_takes_back_what_is_given) {
  Budget budget(100);
  EXPECT_TRUE(budget.Take(60));
  EXPECT_FALSE(budget.Take(60));
  budget.Change(-60);
  EXPECT_TRUE(budget.Take(100));
}

TEST(StateLimit, ends_a_run_whose_nodes_together_hold_too_much) {
  std::vector<workflow::Node> nodes;
  std::vector<std::string> edges;
  for (int i = 0; i < 10; ++i) {
    nodes.push_back(Copies("n" + std::to_string(i), 20));
    if (i > 0) edges.push_back("n" + std::to_string(i - 1) + ">n" + std::to_string(i));
  }
  const RunResult result =
      RunIt(MakeGraph(std::move(nodes), std::move(edges)), Inputs(100'000), WithState(8 * kMiB));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphStateTooLarge);
  EXPECT_EQ(result.error->node_id, "n4");
  EXPECT_EQ(result.error->step, 5);
  EXPECT_NE(result.error->message.find("8388608"), std::string::npos) << result.error->message;
  EXPECT_NE(result.error->hint.find("--state"), std::string::npos) << result.error->hint;
}

TEST(StateLimit, counts_what_the_nodes_of_one_step_hold_together) {
  std::vector<workflow::Node> nodes{Set("s", "{}")};
  std::vector<std::string> edges;
  for (int i = 0; i < 10; ++i) {
    nodes.push_back(Copies("n" + std::to_string(i), 20));
    edges.push_back("s>n" + std::to_string(i));
  }
  const RunResult result =
      RunIt(MakeGraph(std::move(nodes), std::move(edges)), Inputs(100'000), WithState(8 * kMiB));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphStateTooLarge);
  EXPECT_EQ(result.error->step, 2);
  EXPECT_LT(result.node_visits, 11u) << "the step went on";
}

TEST(StateLimit, does_not_count_what_was_replaced) {
  RunConfig config = WithState(4 * kMiB);
  config.recursion_limit = 100;
  const RunResult result = RunIt(MakeGraph({Copies("a", 20)}, {"a>a"}), Inputs(100'000), config);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphRecursionLimit) << result.error->message;
}

TEST(StateLimit, does_not_count_messages_that_were_replaced) {
  RunConfig config = WithState(4 * kMiB);
  config.recursion_limit = 100;
  const RunResult result = RunIt(
      MakeGraph({Set("a", "{'messages': {'role': 'user', 'content': '{{inputs.t}}', 'id': 'm'}}")},
                {"a>a"}),
      Inputs(1'000'000), config);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphRecursionLimit) << result.error->message;
}

TEST(StateLimit, counts_messages_that_pile_up) {
  const RunResult result = RunIt(
      MakeGraph({Set("a", "{'messages': {'role': 'user', 'content': '{{inputs.t}}'}}")}, {"a>a"}),
      Inputs(100'000), WithState(4 * kMiB));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphStateTooLarge) << result.error->message;
  EXPECT_EQ(result.error->node_id, "a");
}

TEST(StateLimit, holds_within_subgraphs_and_frees_what_they_held) {
  RunConfig config = WithState(8 * kMiB);
  config.recursion_limit = 60;
  // Each turn of the subgraph writes the same two entries again.
  const RunResult again =
      RunIt(MakeGraph({Sub("s", MakeGraph({Copies("i", 10), Copies("j", 10)}, {"i>j"}))}, {"s>s"}),
            Inputs(100'000), config);
  ASSERT_TRUE(again.error);
  EXPECT_EQ(again.error->code, errors::kGraphRecursionLimit) << again.error->message;

  const RunResult inner =
      RunIt(MakeGraph({Sub("s", MakeGraph({Copies("i", 50), Copies("j", 50)}, {"i>j"}))}),
            Inputs(100'000), config);
  ASSERT_TRUE(inner.error);
  EXPECT_EQ(inner.error->code, errors::kGraphStateTooLarge);
  EXPECT_EQ(inner.error->node_path, "s/j");
}

TEST(StateLimit, counts_what_the_steps_of_a_sub_workflow_hold) {
  std::string steps;
  for (int i = 0; i < 20; ++i) {
    steps += std::string(i == 0 ? "" : ", ") + "{'type': 'SetVariableNode', 'name': 'p" +
             std::to_string(i) + "', 'variables': {'t': '-{{inputs.t}}'}}";
  }
  const RunResult result =
      RunIt(MakeGraph({Native("w", "SubWorkflowNode", "{'steps': [" + steps + "]}")}),
            Inputs(100'000), WithState(kMiB));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphStateTooLarge);
  EXPECT_EQ(result.error->node_id, "w");
}

TEST(StateLimit, refuses_inputs_that_exceed_it_before_the_run) {
  auto plan = MakePlan(MakeGraph({Set("a", "{}")}));
  ASSERT_TRUE(plan);
  const auto result = graph::Run(*plan, J(Inputs(2 * kMiB)), WithState(kMiB), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errors::kGraphStateTooLarge);
  EXPECT_NE(result.error().message.find("inputs"), std::string::npos) << result.error().message;
}

TEST(TemplateText, is_bounded_for_all_templates_of_a_visit_together) {
  std::string variables;
  for (int i = 0; i < 40; ++i) {
    variables += std::string(i == 0 ? "" : ", ") + "'v" + std::to_string(i) + "': '-{{inputs.t}}'";
  }
  const RunResult result = RunIt(MakeGraph({Set("a", "{" + variables + "}")}), Inputs(2 * kMiB));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kTemplateTooLarge) << result.error->message;
}

TEST(Bounds, hold_for_what_the_templates_of_a_node_yield) {
  // 10,000 references to a million bytes: whoever walks them all does not come back.
  std::string list;
  for (int i = 0; i < 10'000; ++i) list += list.empty() ? "'{{inputs.t}}'" : ", '{{inputs.t}}'";
  const RunResult native = RunIt(MakeGraph({Native("a", "DataTransformNode",
                                                   "{'input_data': {'v': [" + list +
                                                       "]}, 'transforms': [{'source': 'v', "
                                                       "'target': 'n', 'transform': 'length'}]}")}),
                                 Inputs(kMiB));
  ASSERT_TRUE(native.error);
  EXPECT_EQ(native.error->code, errors::kGraphTooLarge) << native.error->message;

  FakeRuntime runtime([](const isolate::Job&) { return Value(json::Object{}); });
  Services services;
  services.micropython = &runtime;
  const RunResult code = RunIt(MakeGraph({Code("a", "return {}", "{'v': [" + list + "]}")}),
                               Inputs(kMiB), {}, services);
  ASSERT_TRUE(code.error);
  EXPECT_EQ(code.error->code, errors::kGraphTooLarge) << code.error->message;
}

}  // namespace
}  // namespace caisson::graph
