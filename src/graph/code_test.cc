// SPDX-License-Identifier: Apache-2.0
// Code nodes: what goes in, what comes out, and what every fault becomes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "errors/graph.h"
#include "errors/isolate.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

using isolate::Fault;
using isolate::Job;
using isolate::Outcome;

RunResult RunCode(FakeRuntime::Answer answer, workflow::Node node, std::string inputs = "{}",
                  RunConfig config = {}, Services services = {}) {
  FakeRuntime runtime(std::move(answer));
  services.micropython = &runtime;
  config.run_id = "r";
  return RunIt(MakeGraph({std::move(node)}), std::move(inputs), config, services);
}

TEST(CodeNode, gets_self_state_and_config_and_nothing_else) {
  Job seen;
  RunConfig config;
  config.configurable = J("{'k': 1, '__internal': 2}").as_object();
  const auto node = Code("c", "return {'v': self.b}",
                         "{'a': 1, 'b': '{{inputs.n}}', 'c': '[[token]]', 'd': ['{{inputs.t}}']}");
  StaticCredentials vault;
  vault.Add("token", "s3cret");
  Services services;
  services.credentials = &vault;
  RunCode(
      [&](const Job& job) -> Result<Outcome> {
        seen = job;
        return Value(json::Object());
      },
      node, "{'n': 5, 't': '[[token]]'}", config, services);
  EXPECT_EQ(Text(seen.self), R"({"a":1,"b":5,"c":"[[token]]","d":["[[token]]"]})");
  EXPECT_EQ(Text(seen.config), R"({"configurable":{"k":1,"thread_id":"r"}})");
  EXPECT_EQ(Text(*seen.state.Find("inputs")), R"({"n":5,"t":"[[token]]"})");
  EXPECT_EQ(seen.state.as_object().size(), 5u);
  EXPECT_NE(seen.source.find("def run(self, state, config):"), std::string::npos) << seen.source;
}

TEST(CodeNode, has_its_result_promoted_like_any_node_s) {
  const RunResult result = RunCode(
      [](const Job&) -> Result<Outcome> {
        return Value(
            J("{'v': 1, 'assistant_message': 'hi', 'node_results': {'x': 2},"
              "'messages': [{'role': 'user', 'content': 'q', 'id': 'm'}]}"));
      },
      Code("c", "return {}"));
  EXPECT_EQ(Text(*result.state.Find("node_results")), R"({"x":2,"c":{"v":1}})");
  EXPECT_EQ(*result.state.Find("assistant_message"), json::Value("hi"));
  EXPECT_EQ(Text(*result.state.Find("messages")),
            R"([{"content":"q","additional_kwargs":{},"response_metadata":{},"type":"human",)"
            R"("name":null,"id":"m"}])");
}

struct FaultCase {
  Fault fault;
  ErrorCode code;
  Ending ending;
  const char* text;
};

TEST(CodeNode, tells_every_fault_apart) {
  const FaultCase cases[] = {
      {Fault::kRaised, errors::kGraphCodeRaised, Ending::kError, "CodeNode 'c': why"},
      {Fault::kSyntax, errors::kGraphCodeSyntax, Ending::kSyntax, "the runtime refused the code"},
      {Fault::kFuel, errors::kIsolateFuelExhausted, Ending::kFuel, "fuel limit of 1000000000"},
      {Fault::kMemory, errors::kIsolateMemoryExhausted, Ending::kMemory, "memory limit"},
      {Fault::kWallClock, errors::kIsolateWallClockExceeded, Ending::kWallClock,
       "wall-clock limit of 30000 ms"},
      {Fault::kOutput, errors::kIsolateOutputExceeded, Ending::kOutput, "maximum size"},
      {Fault::kProtocol, errors::kGraphCodeProtocol, Ending::kProtocol, "CodeNode 'c': why"},
      {Fault::kExited, errors::kGraphCodeExited, Ending::kExited, "ended the interpreter"},
      {Fault::kArtifact, errors::kGraphCodeArtifact, Ending::kArtifact, "the interpreter failed"},
      {Fault::kKilled, errors::kIsolateWorkerLost, Ending::kKilled, "CodeNode 'c': why"}};
  for (const FaultCase& expected : cases) {
    Metrics metrics;
    Services services;
    services.metrics = &metrics;
    const RunResult result =
        RunCode([&](const Job&) -> Result<Outcome> { return FaultOf(expected.fault, "why"); },
                Code("c", "return {}"), "{}", {}, services);
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->code, expected.code);
    EXPECT_NE(result.error->message.find(expected.text), std::string::npos)
        << result.error->message;
    EXPECT_EQ(result.error->node_id, "c");
    const auto counters = metrics.Get("code", "micropython");
    EXPECT_EQ(counters.invocations, 1u);
    EXPECT_EQ(counters.endings[static_cast<std::size_t>(expected.ending)], 1u);
  }
}

TEST(CodeNode, that_gives_no_object_is_a_protocol_fault) {
  const RunResult result = RunCode(
      [](const Job&) -> Result<Outcome> { return Value(json::Array()); }, Code("c", "return []"));
  EXPECT_EQ(result.error->code, errors::kGraphCodeProtocol);
  EXPECT_EQ(result.error->message, "CodeNode 'c': sandbox 'update' must be a JSON object");
}

TEST(CodeNode, has_its_traceback_mapped_to_the_author_s_lines) {
  const auto raise = [](const Job& job) -> Result<Outcome> {
    // The guest says that it failed where "boom" stands in the source that it was given.
    const std::size_t at = job.source.find("boom");
    const auto line =
        std::count(job.source.begin(), job.source.begin() + static_cast<long>(at), '\n');
    Outcome outcome = FaultOf(Fault::kRaised, "no");
    outcome.error_type = "ValueError";
    outcome.traceback = {{static_cast<std::uint32_t>(line) + 1, "run"}, {100000, "elsewhere"}};
    return outcome;
  };
  workflow::Graph graph = MakeGraph({Code("c", "# first\n\nx = 1\nif x:\n    boom(x)\nreturn {}")});
  graph.spans.nodes = {{40, 4, 40, 30}};
  graph.spans.bodies = {{12, 8, 17, 0}};
  FakeRuntime runtime(raise);
  Services services;
  services.micropython = &runtime;
  const RunResult result = RunIt(std::move(graph), "{}", {}, services);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->error_type, "ValueError");
  EXPECT_EQ(result.error->span.line, 40u);
  ASSERT_EQ(result.error->traceback.size(), 2u);
  EXPECT_EQ(result.error->traceback[0], (AuthorFrame{5, 16, "run"}));
  EXPECT_EQ(result.error->traceback[1], (AuthorFrame{0, 0, "elsewhere"}));
}

workflow::Graph WithNan() {
  return MakeGraph({Native("n", "DataTransformNode",
                           "{'transforms': [{'target': 'deep.x', 'default': 'nan',"
                           "'transform': 'float'}]}"),
                    Code("c", "return {}")},
                   {"n>c"});
}

TEST(CodeNode, is_not_shown_values_that_are_no_json) {
  Job seen;
  FakeRuntime runtime([&](const Job& job) -> Result<Outcome> {
    seen = job;
    return Value(json::Object());
  });
  std::string logged;
  Services services;
  services.micropython = &runtime;
  services.log = [&](nodes::LogLevel, std::string_view text) { logged += text; };
  RunIt(WithNan(), "{}", {}, services);
  EXPECT_EQ(seen.state.Find("node_results"), nullptr);
  EXPECT_NE(seen.state.Find("inputs"), nullptr);
  EXPECT_EQ(logged,
            "CodeNode c: dropped non-serialisable state fields from sandbox input: node_results "
            "($.node_results.n.result.deep.x is not finite)");
}

TEST(CodeNode, fails_on_values_that_are_no_json_when_the_policy_says_so) {
  FakeRuntime runtime([](const Job&) -> Result<Outcome> { return Value(json::Object()); });
  Services services;
  services.micropython = &runtime;
  RunConfig config;
  config.policy = Policy::kRaise;
  const RunResult result = RunIt(WithNan(), "{}", config, services);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, errors::kGraphMarshalling);
  EXPECT_EQ(result.error->message,
            "CodeNode 'c': state field 'node_results' is not JSON-serialisable; the number at "
            "$.node_results.n.result.deep.x is not finite");
}

TEST(CodeNode, is_given_no_more_time_than_the_run_has) {
  std::chrono::milliseconds given{0};
  RunConfig config;
  config.timeout = std::chrono::milliseconds(80);
  const RunResult result = RunCode(
      [&](const Job& job) -> Result<Outcome> {
        given = job.limits.wall_clock;
        std::this_thread::sleep_for(given);
        return FaultOf(Fault::kWallClock);
      },
      Code("c", "return {}"), "{}", config);
  EXPECT_LE(given.count(), 80);
  EXPECT_EQ(result.status, RunStatus::kTimedOut);
  EXPECT_EQ(result.error->code, errors::kGraphTimedOut);
}

TEST(CodeNode, passes_on_a_failure_of_the_runtime) {
  const RunResult result = RunCode(
      [](const Job&) -> Result<Outcome> { return Fail(errors::kIsolateWorkerLost, "no worker"); },
      Code("c", "return {}"));
  EXPECT_EQ(result.error->code, errors::kIsolateWorkerLost);
  EXPECT_EQ(result.error->message, "CodeNode 'c': no worker");
}

TEST(Parallel, code_nodes_of_one_step_run_at_once) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  FakeRuntime runtime([&](const Job&) -> Result<Outcome> {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    // Waits for the others, but not for ever.
    for (int i = 0; i < 400 && most < 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    --running;
    return Value(J("{'v': 1}"));
  });
  Services services;
  services.micropython = &runtime;
  auto graph = MakeGraph({Set("s", "{}"), Code("a", "return {}"), Code("b", "return {}"),
                          Code("c", "return {}"), Code("d", "return {}")},
                         {"s>a", "s>b", "s>c", "s>d"});
  EXPECT_TRUE(RunIt(std::move(graph), "{}", {}, services).ok());
  EXPECT_EQ(most.load(), 4);
}

TEST(Parallel, max_concurrency_holds) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  FakeRuntime runtime([&](const Job&) -> Result<Outcome> {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    // Until there are two; then a moment in which a third could come.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (most < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --running;
    return Value(json::Object());
  });
  Services services;
  services.micropython = &runtime;
  RunConfig config;
  config.max_concurrency = 2;
  std::vector<workflow::Node> nodes{Set("s", "{}")};
  std::vector<std::string> edges;
  for (const char* id : {"a", "b", "c", "d", "e", "f"}) {
    nodes.push_back(Code(id, "return {}"));
    edges.push_back(std::string("s>") + id);
  }
  EXPECT_TRUE(RunIt(MakeGraph(std::move(nodes), std::move(edges)), "{}", config, services).ok());
  EXPECT_EQ(most.load(), 2);
}

TEST(Parallel, the_first_node_by_id_that_failed_is_the_one_reported) {
  FakeRuntime runtime([](const Job& job) -> Result<Outcome> {
    return FaultOf(Fault::kRaised, Text(*job.self.Find("m")));
  });
  Services services;
  services.micropython = &runtime;
  RunConfig config;
  config.max_concurrency = 1;
  const RunResult result = RunIt(MakeGraph({Set("s", "{}"), Code("b", "return {}", "{'m': 2}"),
                                            Code("a", "return {}", "{'m': 1}"),
                                            Native("d", "DelayNode", "{'duration_seconds': 30}")},
                                           {"s>a", "s>b", "s>d"}),
                                 "{}", config, services);
  EXPECT_EQ(result.error->node_id, "a");
  EXPECT_EQ(result.error->message, "CodeNode 'a': 1");
  EXPECT_LT(result.duration, std::chrono::seconds(5));
}

TEST(Parallel, nested_subgraphs_share_the_threads_without_a_deadlock) {
  FakeRuntime runtime([](const Job&) -> Result<Outcome> {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Value(J("{'v': 1}"));
  });
  Services services;
  services.micropython = &runtime;
  const auto fan = [](const std::string& prefix, auto make) {
    std::vector<workflow::Node> nodes{Set(prefix + "s", "{}")};
    std::vector<std::string> edges;
    for (const char* leaf : {"1", "2", "3", "4"}) {
      nodes.push_back(make(prefix + leaf));
      edges.push_back(prefix + "s>" + prefix + leaf);
    }
    return MakeGraph(std::move(nodes), std::move(edges));
  };
  const auto leaf = [](const std::string& id) { return Code(id, "return {}"); };
  const auto middle = [&](const std::string& id) { return Sub(id, fan(id + "_", leaf)); };
  const auto outer = [&](const std::string& id) { return Sub(id, fan(id + "_", middle)); };
  for (const int threads : {1, 2, 3, 32}) {
    RunConfig config;
    config.max_concurrency = threads;
    const RunResult result = RunIt(fan("r", outer), "{}", config, services);
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.node_visits, 1u + 4 * (1 + 1 + 4 * (1 + 1 + 4)));
  }
}

TEST(Cancel, wakes_a_delay) {
  std::stop_source source;
  Services services;
  services.stop = source.get_token();
  struct Canceller final : EventSink {
    explicit Canceller(std::stop_source& to_stop) : source(to_stop) {}
    void OnEvent(const Event& event) override {
      if (event.kind == EventKind::kNodeStarted) source.request_stop();
    }
    std::stop_source& source;
  } canceller(source);
  services.events = &canceller;
  const RunResult result = RunIt(
      MakeGraph({Native("d", "DelayNode", "{'duration_seconds': 600}"), Set("b", "{}")}, {"d>b"}),
      "{}", {}, services);
  EXPECT_EQ(result.status, RunStatus::kCancelled);
  EXPECT_EQ(result.error->code, errors::kGraphCancelled);
  EXPECT_EQ(result.error->node_id, "d");
  EXPECT_LT(result.duration, std::chrono::seconds(10));
}

TEST(Cancel, before_the_start_runs_nothing) {
  std::stop_source source;
  source.request_stop();
  Services services;
  services.stop = source.get_token();
  const RunResult result = RunIt(MakeGraph({Set("a", "{}")}), "{}", {}, services);
  EXPECT_EQ(result.status, RunStatus::kCancelled);
  EXPECT_EQ(result.node_visits, 0u);
}

TEST(Timeout, ends_delays_loops_and_sub_workflows) {
  RunConfig config;
  config.timeout = std::chrono::milliseconds(30);
  for (auto graph :
       {MakeGraph({Native("d", "DelayNode", "{'duration_seconds': 1e300}")}),
        MakeGraph({Native("d", "DelayNode", "{'duration_seconds': 0.001}")}, {"d>d"}),
        MakeGraph({Native("s", "SubWorkflowNode",
                          "{'steps': [{'type': 'DelayNode', 'duration_seconds': 60}]}")}),
        MakeGraph({Sub("s", MakeGraph({Native("d", "DelayNode", "{'duration_seconds': 60}")}))})}) {
    const RunResult result = RunIt(std::move(graph), "{}", config);
    EXPECT_EQ(result.status, RunStatus::kTimedOut);
    EXPECT_EQ(result.error->code, errors::kGraphTimedOut);
    EXPECT_LT(result.duration, std::chrono::seconds(10));
  }
}

}  // namespace
}  // namespace caisson::graph
