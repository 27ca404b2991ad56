// SPDX-License-Identifier: Apache-2.0
#include "graph/policy.h"

#include <gtest/gtest.h>

#include <atomic>

#include "errors/graph.h"
#include "errors/isolate.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

RunConfig Configured(std::string text) {
  auto config = ParseRunConfig(J(std::move(text)));
  EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message);
  return *config;
}

std::string Refusal(std::string text) {
  auto config = ParseRunConfig(J(std::move(text)));
  return config ? "accepted" : config.error().message;
}

// Fails `failures` times with that fault, then gives a value.
class Flaky {
 public:
  Flaky(int failures, isolate::Fault fault)
      : runtime([this, failures, fault](const isolate::Job&) -> Result<isolate::Outcome> {
          if (calls++ < failures) return FaultOf(fault, "no");
          return Value(json::Object{{"ok", true}});
        }) {
    services.micropython = &runtime;
    services.events = &recorder;
  }
  RunResult Run(const std::string& config) {
    return RunIt(MakeGraph({Code("c", "return {}")}), "{}", Configured(config), services);
  }
  std::atomic<int> calls{0};
  FakeRuntime runtime;
  Recorder recorder;
  Services services;
};

TEST(Policy, reads_what_the_documentation_shows) {
  const RunConfig config = Configured(
      "{'timeout_seconds': 60, 'node_timeout_seconds': 2.5, 'retry': {'count': 2},"
      " 'nodes': {'outer/a': {'retry': {'count': 5, 'backoff_seconds': 0.1, 'factor': 3,"
      " 'max_seconds': 4, 'jitter': 0, 'codes': ['graph.code_raised', 'isolate.*']},"
      " 'timeout_seconds': 9}},"
      " 'budget': {'nodes': 10, 'tokens': 1000, 'isolate_seconds': 1.5}}");
  EXPECT_EQ(config.timeout, std::chrono::seconds(60));
  EXPECT_EQ(config.policies.TimeoutOf("x"), std::chrono::milliseconds(2500));
  EXPECT_EQ(config.policies.TimeoutOf("outer/a"), std::chrono::seconds(9));
  EXPECT_EQ(config.policies.RetryOf("x")->count, 2);
  const Retry& retry = *config.policies.RetryOf("outer/a");
  EXPECT_EQ(retry.count, 5);
  EXPECT_EQ(WaitBefore(retry, 2, 0.9), std::chrono::milliseconds(100));
  EXPECT_EQ(WaitBefore(retry, 3, 0.9), std::chrono::milliseconds(300));
  EXPECT_EQ(WaitBefore(retry, 9, 0.9), std::chrono::seconds(4));
  EXPECT_TRUE(IsRetried(retry, errors::kIsolateFuelExhausted));
  EXPECT_FALSE(IsRetried(retry, errors::kGraphBranch));
  EXPECT_EQ(config.budget.nodes, 10);
  EXPECT_EQ(config.budget.isolate_time, std::chrono::milliseconds(1500));
}

TEST(Policy, jitter_shortens_a_wait) {
  Retry retry;
  retry.backoff = std::chrono::seconds(1);
  retry.jitter = 0.5;
  EXPECT_EQ(WaitBefore(retry, 2, 0), std::chrono::milliseconds(1000));
  EXPECT_EQ(WaitBefore(retry, 2, 1), std::chrono::milliseconds(500));
}

TEST(Policy, refuses_by_path_what_it_does_not_know) {
  EXPECT_EQ(Refusal("{'retry': {'times': 3}}"),
            "the run configuration: $.retry.times is not known; it may have backoff_seconds, "
            "codes, count, factor, jitter, max_seconds");
  EXPECT_EQ(Refusal("{'nodes': {'a': {'retry': {'codes': ['graph.code_raised', 'x.y']}}}}"),
            "the run configuration: $.nodes.a.retry.codes[1] names no error code; see "
            "api/errors.yaml, or use \"area.*\" or \"*\"");
  EXPECT_EQ(Refusal("{'retry': {'count': 101}}"),
            "the run configuration: $.retry.count must be an integer from 0 to 100");
  EXPECT_EQ(Refusal("{'timeout_seconds': 0}"),
            "the run configuration: $.timeout_seconds must be a number of seconds, at least 0.001 "
            "and at most a year");
  EXPECT_EQ(Refusal("{'budget': {'nodes': true}}"),
            "the run configuration: $.budget.nodes must be an integer from 1 to 9007199254740992");
}

TEST(Retry, tries_again_what_its_codes_name) {
  Flaky flaky(2, isolate::Fault::kRaised);
  const RunResult result = flaky.Run(
      "{'nodes': {'c': {'retry': {'backoff_seconds': 0.001, 'codes': ['graph.code_raised']}}}}");
  EXPECT_EQ(result.status, RunStatus::kSucceeded);
  EXPECT_EQ(flaky.calls, 3);
  EXPECT_EQ(result.node_visits, 3u);
  EXPECT_EQ(flaky.recorder.Lines(),
            "run_started\nstep_started 1\nnode_started c 1\nnode_error c 1\nnode_started c 1\n"
            "node_error c 1\nnode_started c 1\nnode_finished c 1\nrun_finished\n");
  const json::Value& error = flaky.recorder.events[3];
  EXPECT_GE(error.Find("retry_in_ms")->as_int(), 0);
  EXPECT_EQ(*flaky.recorder.events[7].Find("attempt"), json::Value(3));
}

TEST(Retry, gives_up_after_its_count) {
  Flaky flaky(9, isolate::Fault::kKilled);
  const RunResult result = flaky.Run("{'retry': {'count': 2, 'backoff_seconds': 0.001}}");
  EXPECT_EQ(result.status, RunStatus::kFailed);
  EXPECT_EQ(result.error->code, errors::kIsolateWorkerLost);
  EXPECT_EQ(flaky.calls, 3);
}

TEST(Retry, leaves_alone_what_does_not_pass_by_itself) {
  Flaky flaky(1, isolate::Fault::kRaised);
  EXPECT_EQ(flaky.Run("{'retry': {}}").status, RunStatus::kFailed);
  EXPECT_EQ(flaky.calls, 1);
}

TEST(Timeout, of_a_node_ends_it_and_not_the_run) {
  const auto graph = MakeGraph({Native("slow", "DelayNode", "{'duration_seconds': 30}")});
  const RunResult result =
      RunIt(graph, "{}", Configured("{'nodes': {'slow': {'timeout_seconds': 0.02}}}"));
  EXPECT_EQ(result.status, RunStatus::kFailed);
  EXPECT_EQ(result.error->code, errors::kGraphNodeTimedOut);
  EXPECT_EQ(result.error->node_id, "slow");
}

TEST(Timeout, of_a_subgraph_ends_what_is_in_it) {
  const auto graph = MakeGraph(
      {Sub("outer", MakeGraph({Native("slow", "DelayNode", "{'duration_seconds': 30}")}))});
  const RunResult result =
      RunIt(graph, "{}", Configured("{'nodes': {'outer': {'timeout_seconds': 0.02}}}"));
  EXPECT_EQ(result.error->code, errors::kGraphNodeTimedOut);
}

TEST(Timeout, of_a_node_is_retried_with_its_time_anew) {
  Recorder recorder;
  Services services;
  services.events = &recorder;
  const auto graph = MakeGraph(
      {Sub("outer", MakeGraph({Native("slow", "DelayNode", "{'duration_seconds': 30}")}))});
  RunIt(graph, "{}",
        Configured("{'nodes': {'outer': {'timeout_seconds': 0.01, 'retry': {'count': 1, "
                   "'backoff_seconds': 0.001}}}}"),
        services);
  EXPECT_EQ(recorder.Lines(),
            "run_started\nstep_started 1\nnode_started outer 1\nstep_started 1\n"
            "node_started slow 1\nnode_error slow 1\nnode_error outer 1\nnode_started outer 1\n"
            "step_started 1\nnode_started slow 1\nnode_error slow 1\nnode_error outer 1\n"
            "run_finished\n");
}

TEST(Budget, ends_a_run_that_visits_too_many_nodes) {
  const auto graph = MakeGraph({Set("a", "{}"), Set("b", "{}")}, {"a>b", "b>a"});
  const RunResult result = RunIt(graph, "{}", Configured("{'budget': {'nodes': 5}}"));
  EXPECT_EQ(result.error->code, errors::kGraphBudget);
  EXPECT_EQ(result.steps, 5);
}

TEST(Budget, ends_a_run_that_is_too_long_in_isolates) {
  FakeRuntime runtime([&](const isolate::Job&) -> Result<isolate::Outcome> {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Value(json::Object{});
  });
  Services services;
  services.micropython = &runtime;
  const RunResult result = RunIt(MakeGraph({Code("c", "return {}")}), "{}",
                                 Configured("{'budget': {'isolate_seconds': 0.001}}"), services);
  EXPECT_EQ(result.error->code, errors::kGraphBudget);
}

TEST(NodePolicies, are_refused_for_nodes_that_do_not_exist) {
  const Plan plan = *MakePlan(MakeGraph({Set("a/b", "{'x': 1}")}));
  for (const char* path : {"a/b", "a", "", "a~1b/c", "a~1b:t/c"}) {
    const auto result = graph::Run(
        plan, J("{}"), Configured("{'nodes': {'" + std::string(path) + "': {'retry': {}}}}"), {});
    ASSERT_FALSE(result.has_value()) << path;
    EXPECT_EQ(result.error().code.name, errors::kGraphConfig.name);
    EXPECT_NE(result.error().message.find("'" + std::string(path) + "'"), std::string::npos);
  }
  EXPECT_TRUE(
      graph::Run(plan, J("{}"), Configured("{'nodes': {'a~1b': {'retry': {}}}}"), {}).has_value());
}

}  // namespace
}  // namespace caisson::graph
