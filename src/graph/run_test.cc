// SPDX-License-Identifier: Apache-2.0
#include "graph/run.h"

#include <gtest/gtest.h>

#include <chrono>

#include "errors/graph.h"
#include "errors/nodes.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

std::string Visits(workflow::Graph graph, std::string inputs = "{}", const RunConfig& config = {}) {
  Recorder recorder;
  Services services;
  services.events = &recorder;
  RunIt(std::move(graph), std::move(inputs), config, services);
  std::string text;
  for (const json::Value& event : recorder.events) {
    if (*event.Find("event") != json::Value("node_finished")) continue;
    text += event.Find("node")->as_string() + Text(*event.Find("step")) + " ";
  }
  return text;
}

RunConfig Limited(int limit) {
  RunConfig config;
  config.recursion_limit = limit;
  return config;
}

TEST(Run, goes_along_the_edges_and_keeps_each_result) {
  const RunResult result =
      RunIt(MakeGraph({Set("a", "{'x': 1}"), Set("b", "{'y': '{{a.x}}', 'z': 'n={{inputs.n}}'}")},
                      {"a>b", "b>END"}),
            "{'n': 2}");
  EXPECT_EQ(result.status, RunStatus::kSucceeded);
  EXPECT_EQ(Text(*result.state.Find("node_results")), R"({"a":{"x":1},"b":{"y":1,"z":"n=2"}})");
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.node_visits, 2u);
}

TEST(Run, starts_with_the_state_that_the_peer_starts_with) {
  RunConfig config = *ParseRunConfig(
      J("{'configurable': {'k': 1}, 'tags': [' a ', 'A', '', 'b'], 'run_name': ' r ',"
        "'metadata': {'m': 1}, 'recursion_limit': 9}"));
  config.run_id = "run-7";
  const RunResult result = RunIt(MakeGraph({Native("a", "NoOpTaskNode", "{}")}), "[1]", config);
  EXPECT_EQ(Text(result.state),
            R"({"messages":[],"workspace_id":null,"inputs":[1],"node_results":{"a":{}},)"
            R"("config":{"configurable":{"k":1,"thread_id":"run-7"},"tags":["a","b"],)"
            R"("metadata":{"m":1},"callbacks":[],"run_name":"r","recursion_limit":9}})");
}

TEST(Run, runs_the_join_of_an_uneven_diamond_twice) {
  const auto v = [](const char* id) { return Native(id, "NoOpTaskNode", "{}"); };
  EXPECT_EQ(Visits(MakeGraph({v("a"), v("b"), v("c"), v("d")}, {"a>b", "a>d", "b>c", "c>d"})),
            "a1 b2 d2 c3 d4 ");
}

TEST(Run, triggers_a_node_once_for_several_sources_of_one_step) {
  const auto v = [](const char* id) { return Native(id, "NoOpTaskNode", "{}"); };
  EXPECT_EQ(
      Visits(MakeGraph({v("a"), v("b"), v("c"), v("d")}, {"a>b", "a>c", "b>d", "c>d", "b>d"})),
      "a1 b2 c2 d3 ");
}

TEST(Run, never_runs_what_cannot_be_reached) {
  EXPECT_EQ(Visits(MakeGraph({Set("a", "{}"), Set("z", "{}")}, {"z>a"})), "a1 ");
}

TEST(Run, takes_edges_from_START_instead_of_the_entrypoint) {
  const auto graph = [](std::vector<std::string> edges) {
    return MakeGraph({Set("a", "{}"), Set("b", "{}"), Set("c", "{}")}, std::move(edges));
  };
  EXPECT_EQ(Visits(graph({"START>c", "START>b"})), "b1 c1 ");
  EXPECT_EQ(Visits(graph({"START>END"})), "");
}

TEST(Run, shows_all_nodes_of_a_step_the_same_state) {
  const RunResult result = RunIt(MakeGraph(
      {Set("s", "{}"), Set("a", "{'v': 1}"), Set("b", "{'seen': '{{node_results.a.v}}'}")},
      {"s>a", "s>b"}));
  EXPECT_EQ(Entry(result, "b"), R"({"seen":"{{node_results.a.v}}"})");
}

TEST(Run, applies_the_updates_of_a_step_in_the_order_of_ids) {
  const RunResult result = RunIt(MakeGraph(
      {Set("s", "{}"), Set("z", "{'node_results': {'k': 'z'}}"),
       Set("b", "{'node_results': {'k': 'b'}}"), Set("B", "{'node_results': {'k': 'B'}}")},
      {"s>z", "s>b", "s>B"}));
  EXPECT_EQ(Text(*result.state.Find("node_results")), R"({"s":{},"k":"z","B":{},"b":{},"z":{}})");
}

TEST(Run, refuses_two_values_for_one_field_in_one_step) {
  const RunResult result =
      RunIt(MakeGraph({Set("s", "{}"), Set("a", "{'inputs': 1}"), Set("b", "{'inputs': 2}")},
                      {"s>a", "s>b"}),
            "{'old': true}");
  EXPECT_EQ(result.status, RunStatus::kFailed);
  EXPECT_EQ(result.error->code, errors::kGraphConflict);
  EXPECT_EQ(result.error->message,
            "At key 'inputs': Can receive only one value per step. Use an Annotated key to handle "
            "multiple values. Nodes 'a' and 'b' wrote it in the same step.");
  EXPECT_EQ(result.error->node_id, "b");
  EXPECT_EQ(result.error->step, 2);
  EXPECT_EQ(Text(*result.state.Find("inputs")), R"({"old":true})");
}

TEST(Run, needs_one_step_more_than_it_takes_as_the_peer_does) {
  const auto chain = [] {
    return MakeGraph({Set("a", "{}"), Set("b", "{}"), Set("c", "{}")}, {"a>b", "b>c"});
  };
  EXPECT_TRUE(RunIt(chain(), "{}", Limited(4)).ok());
  const RunResult result = RunIt(chain(), "{}", Limited(3));
  EXPECT_EQ(result.error->code, errors::kGraphRecursionLimit);
  EXPECT_EQ(result.error->message,
            "Recursion limit of 3 reached without hitting a stop condition. You can increase the "
            "limit by setting the `recursion_limit` config key.");
  EXPECT_EQ(result.node_visits, 3u);
}

TEST(Run, ends_an_endless_loop_at_the_default_limit) {
  const RunResult result = RunIt(MakeGraph({Set("a", "{'n': '{{inputs.n}}'}")}, {"a>a"}));
  EXPECT_EQ(result.error->code, errors::kGraphRecursionLimit);
  EXPECT_EQ(result.node_visits, 10007u);
}

workflow::ConditionalEdge If(std::string source, std::string path,
                             std::vector<std::pair<std::string, std::string>> mapping,
                             std::optional<std::string> fallback = {}) {
  return {std::move(source), std::move(path), std::move(mapping), std::move(fallback)};
}

TEST(Branch, takes_the_python_text_of_the_value_as_its_key) {
  const std::pair<const char*, const char*> cases[] = {
      {"true", "true"},   {"null", "null"},
      {"3", "3"},         {"3.0", "3.0"},
      {"[1]", "[1]"},     {"{'k': 1}", "{'k': 1}"},
      {"'text'", "text"}, {"['a', null]", "['a', None]"},
      {"1e16", "1e+16"}};
  for (const auto& [value, key] : cases) {
    EXPECT_EQ(Visits(MakeGraph({Set("a", std::string("{'x': ") + value + "}"), Set("b", "{}")}, {},
                               {If("a", "node_results.a.x", {{key, "b"}, {"other", "a"}})})),
              "a1 b2 ")
        << value;
  }
}

TEST(Branch, sees_its_own_node_s_update_and_no_other_of_the_step) {
  const auto graph = [] {
    return MakeGraph({Set("s", "{}"), Set("a", "{'x': 1}"), Set("b", "{'y': 1}"), Set("c", "{}")},
                     {"s>a", "s>b"},
                     {If("b", "node_results.a.x", {{"1", "a"}, {"null", "c"}}),
                      If("a", "node_results.a.x", {{"1", "__end__"}})});
  };
  EXPECT_EQ(Visits(graph()), "s1 a2 b2 c3 ");
}

TEST(Branch, fires_beside_direct_edges) {
  EXPECT_EQ(Visits(MakeGraph({Set("a", "{'x': 'b'}"), Set("b", "{}"), Set("c", "{}")}, {"a>c"},
                             {If("a", "node_results.a.x", {{"b", "b"}})})),
            "a1 b2 c2 ");
}

TEST(Branch, does_not_look_among_nodes_or_into_lists) {
  EXPECT_EQ(Visits(MakeGraph({Set("a", "{'x': [5]}"), Set("b", "{}"), Set("c", "{}")}, {},
                             {If("a", "a.x", {{"null", "b"}, {"[5]", "c"}})})),
            "a1 b2 ");
  EXPECT_EQ(Visits(MakeGraph({Set("a", "{'x': [5]}"), Set("b", "{}"), Set("c", "{}")}, {},
                             {If("a", "node_results.a.x.0", {{"null", "b"}}, "c")})),
            "a1 b2 ");
}

TEST(Branch, without_a_target_is_an_error_of_its_node) {
  const RunResult result =
      RunIt(MakeGraph({Set("a", "{'x': 'b'}"), Set("b", "{}")}, {},
                      {If("a", "node_results.a.x", {{"q", "b"}, {"a'", "b"}})}));
  EXPECT_EQ(result.error->code, errors::kGraphBranch);
  EXPECT_EQ(result.error->node_id, "a");
  EXPECT_EQ(result.error->message,
            "Conditional edge on state path 'node_results.a.x' produced value 'b', which is not in "
            "mapping [\"a'\", 'q'] and no 'default' target was configured. Add a 'default' (use "
            "'END' to end the run intentionally).");
}

TEST(Loop, visits_each_item_and_ends) {
  const RunResult result = RunIt(
      MakeGraph({Native("each", "ForLoopNode", "{'items': '{{inputs.l}}'}"),
                 Set("body", "{'seen': '{{each.current_item}}'}"), Set("done", "{}")},
                {"body>each"},
                {If("each", "node_results.each.done", {{"false", "body"}, {"true", "done"}})}),
      "{'l': ['x', 'y', 'z']}");
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(Entry(result, "body"), R"({"seen":"z"})");
  EXPECT_EQ(result.steps, 8);
}

TEST(Subgraph, shares_one_namespace_with_its_parent) {
  auto inner = MakeGraph({Set("i", "{'v': '{{a.x}}'}"), Set("a", "{'x': 'inner'}")}, {"i>a"});
  const RunResult result = RunIt(
      MakeGraph({Set("a", "{'x': 1}"), Sub("s", std::move(inner)), Set("b", "{'v': '{{a.x}}'}")},
                {"a>s", "s>b"}));
  EXPECT_EQ(Text(*result.state.Find("node_results")),
            R"({"a":{"x":"inner"},"i":{"v":1},"b":{"v":"inner"}})");
  EXPECT_EQ(result.steps, 3);
}

TEST(Subgraph, writes_back_only_what_it_changed) {
  const auto inner = [](const char* id) { return MakeGraph({Set(id, "{'v': 1}")}); };
  const RunResult result = RunIt(MakeGraph(
      {Set("a", "{'n': 1}"), Sub("s", inner("x")), Sub("t", inner("y"))}, {"a>s", "a>t"}));
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(Text(*result.state.Find("node_results")), R"({"a":{"n":1},"x":{"v":1},"y":{"v":1}})");
}

TEST(Subgraph, names_the_path_to_what_failed) {
  auto deep = MakeGraph({Native("boom", "MergeNode", "{'items': [1]}")});
  auto middle = MakeGraph({Set("first", "{}"), Sub("deep", std::move(deep))}, {"first>deep"});
  const RunResult result =
      RunIt(MakeGraph({Set("a", "{}"), Sub("middle", std::move(middle))}, {"a>middle"}));
  EXPECT_EQ(result.error->code, errors::kNodesFailed);
  EXPECT_EQ(result.error->node_id, "boom");
  EXPECT_EQ(result.error->node_path, "middle/deep/boom");
  EXPECT_EQ(result.error->step, 2);
}

TEST(SubWorkflow, treats_what_templates_yield_as_data) {
  const RunResult result =
      RunIt(MakeGraph({Native("s", "SubWorkflowNode",
                              "{'steps': [{'type': 'SetVariableNode', 'name': 'q', 'variables':"
                              "{'v': '{{inputs.t}}', 'c': '{{inputs.c}}'}}]}")}),
            "{'t': '{{inputs.c}}', 'c': '[[token]]'}");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(Text(*result.state.Find("node_results")->Find("s")->Find("result")),
            R"({"v":"{{inputs.c}}","c":"[[token]]"})");
}

TEST(Bounds, stop_values_that_grow_deeper_at_each_turn) {
  const RunResult result =
      RunIt(MakeGraph({Set("a", "{'x': '{{a}}', 'y': '{{inputs}}'}")}, {"a>a"}));
  EXPECT_EQ(result.error->code, errors::kGraphTooDeep);
  EXPECT_EQ(result.error->node_id, "a");
}

TEST(Bounds, stop_values_that_double_at_each_turn) {
  const RunResult shared = RunIt(MakeGraph({Set("a", "{'x': '{{a}}', 'y': '{{a}}'}")}, {"a>a"}));
  EXPECT_EQ(shared.error->code, errors::kGraphTooLarge);
  const RunResult text = RunIt(MakeGraph({Set("a", "{'x': '-{{a.x}}{{a.x}}'}")}, {"a>a"}));
  EXPECT_EQ(text.status, RunStatus::kFailed);
}

TEST(Events, tell_the_run_in_order) {
  Recorder recorder;
  Services services;
  services.events = &recorder;
  RunIt(MakeGraph({Set("a", "{'x': 1}"), Sub("s", MakeGraph({Set("i", "{}")}))}, {"a>s"}), "{}", {},
        services);
  EXPECT_EQ(recorder.Lines(),
            "run_started\nstep_started 1\nnode_started a 1\nnode_finished a 1\n"
            "step_started 2\nnode_started s 2\nstep_started 1\nnode_started i 1\n"
            "node_finished i 1\nnode_finished s 2\nrun_finished\n");
  for (std::size_t i = 0; i < recorder.events.size(); ++i) {
    EXPECT_EQ(*recorder.events[i].Find("sequence"), json::Value(static_cast<int>(i) + 1));
  }
  EXPECT_EQ(Text(*recorder.events[3].Find("update")), R"({"node_results":{"a":{"x":1}}})");
  EXPECT_EQ(*recorder.events[7].Find("graph"), json::Value("s"));
  EXPECT_EQ(*recorder.events.back().Find("result")->Find("status"), json::Value("succeeded"));
}

TEST(Events, tell_of_the_error) {
  Recorder recorder;
  Services services;
  services.events = &recorder;
  RunIt(MakeGraph({Native("m", "MergeNode", "{'items': [1]}")}), "{}", {}, services);
  EXPECT_EQ(recorder.Lines(),
            "run_started\nstep_started 1\nnode_started m 1\nnode_error m 1\nrun_finished\n");
  EXPECT_EQ(Text(*recorder.events[3].Find("error")),
            R"({"code":"nodes.failed","message":"Unable to infer merge mode; specify mode )"
            R"(explicitly","node":"m","node_path":"m","step":1})");
}

TEST(Metrics, count_each_visit_once_as_begun_and_once_as_ended) {
  Metrics metrics;
  Services services;
  services.metrics = &metrics;
  RunIt(MakeGraph({Set("a", "{}"), Native("m", "MergeNode", "{'items': [1]}")}, {"a>m"}), "{}", {},
        services);
  const auto merged = metrics.Get("MergeNode", "host");
  EXPECT_EQ(merged.invocations, 1u);
  EXPECT_EQ(merged.endings[static_cast<std::size_t>(Ending::kError)], 1u);
  EXPECT_EQ(metrics.Get("SetVariableNode", "host").endings[0], 1u);
  EXPECT_EQ(metrics.ToJson().as_array().size(), 2u);
}

TEST(RunConfig, is_refused_with_the_path_of_what_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"{'recursion_limit': 251}", "$.recursion_limit"},
      {"{'recursion_limit': 0}", "from 1 to 250"},
      {"{'max_concurrency': 33}", "$.max_concurrency"},
      {"{'tags': [1]}", "$.tags"},
      {"{'configurable': 5}", "$.configurable"},
      {"{'other': 5}", "$.other is not known"},
      {"[]", "must be a JSON object"},
      {"{'recursion_limit': '5'}", "integer"}};
  for (const auto& [text, expected] : cases) {
    const auto config = ParseRunConfig(J(text));
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, errors::kGraphConfig);
    EXPECT_NE(config.error().message.find(expected), std::string::npos) << config.error().message;
  }
}

TEST(Scale, a_hundred_thousand_nodes_in_a_chain_and_in_one_step) {
  constexpr int kNodes = 100'000;
  workflow::Graph wide = MakeGraph({Native("s", "NoOpTaskNode", "{}")});
  for (int i = 1; i < kNodes; ++i) {
    wide.nodes.push_back(Native("n" + std::to_string(i), "NoOpTaskNode", "{}"));
    wide.edges.push_back({"s", "n" + std::to_string(i)});
    wide.edges.push_back({"n" + std::to_string(i), "n" + std::to_string(kNodes - i)});
  }
  const RunResult result = RunIt(std::move(wide), "{}", Limited(5));
  EXPECT_EQ(result.error->code, errors::kGraphRecursionLimit);
  EXPECT_EQ(result.node_visits, 1u + 4u * (kNodes - 1));
}

}  // namespace
}  // namespace caisson::graph
