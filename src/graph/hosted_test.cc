// SPDX-License-Identifier: Apache-2.0
#include "graph/hosted.h"

#include <gtest/gtest.h>

#include "errors/graph.h"
#include "errors/host.h"
#include "errors/nodes.h"
#include "graph/metrics.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

// Serves two types; what a node of them gives is a function of the call.
class FakeHost final : public host::Provider {
 public:
  using Answer =
      std::function<std::expected<json::Value, host::Failure>(const host::Call&, host::Waiter&)>;
  explicit FakeHost(Answer answer) : answer_(std::move(answer)) {}

  const host::ServedType* Find(std::string_view type) const override {
    for (const host::ServedType& served : types_) {
      if (served.name == type) return &served;
    }
    return nullptr;
  }
  Result<void> Check(const std::string&, const std::string&, const json::Value& config) override {
    if (config.Find("bad") == nullptr) return {};
    return Fail(errors::kNodesConfig, "$.bad is bad");
  }
  std::expected<json::Value, host::Failure> Run(const host::Call& call,
                                                host::Waiter& waiter) override {
    calls.push_back(call);
    return answer_(call, waiter);
  }

  std::vector<host::Call> calls;

 private:
  Answer answer_;
  std::vector<host::ServedType> types_ = {{.name = "QueryClassifierNode", .category = "x"},
                                          {.name = "SlackEventsParserNode", .category = "x"}};
};

json::Value EntryOf(const host::Call& call, json::Value entry) {
  return json::Object{{"node_results", json::Object{{call.node, std::move(entry)}}}};
}

FakeHost::Answer GiveBack() {
  return [](const host::Call& call, host::Waiter&) {
    return EntryOf(call, json::Object{{"values", call.values}});
  };
}

Result<Plan> PlanWith(workflow::Graph graph, host::Provider* host) {
  return Plan::Create(std::make_shared<const workflow::Graph>(std::move(graph)),
                      nodes::BuiltinNodes(), {.host = host});
}

RunResult RunWith(workflow::Graph graph, FakeHost& host, std::string inputs, Services services = {},
                  const RunConfig& config = {}) {
  const auto plan = PlanWith(std::move(graph), &host);
  EXPECT_TRUE(plan) << plan.error().message;
  services.host = &host;
  auto result = Run(*plan, J(std::move(inputs)), config, services);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

constexpr const char* kType = "QueryClassifierNode";

TEST(Hosted, is_planned_where_a_host_serves_the_type) {
  FakeHost host(GiveBack());
  EXPECT_TRUE(PlanWith(MakeGraph({Native("n", kType, "{}")}), &host));
  for (host::Provider* none :
       {static_cast<host::Provider*>(nullptr), static_cast<host::Provider*>(&host)}) {
    const auto refused = PlanWith(MakeGraph({Native("n", "BleuMetricsNode", "{}")}), none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code.name, errors::kGraphNotNative.name);
  }
}

TEST(Hosted, is_refused_before_the_run_with_a_configuration_that_the_host_refuses) {
  FakeHost host(GiveBack());
  const auto refused = PlanWith(MakeGraph({Native("n", kType, "{'bad': 1}")}), &host);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code.name, errors::kNodesConfig.name);
  EXPECT_EQ(refused.error().message,
            "Failed to construct node 'n' of type 'QueryClassifierNode': $.bad is bad");
}

TEST(Hosted, has_no_workflow_tools) {
  FakeHost host(GiveBack());
  const auto refused = PlanWith(
      MakeGraph({Native("n", kType,
                        "{'tools': [{'__orcheo_ir_kind__': 'workflow_tool', 'name': 't'}]}")}),
      &host);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code.name, errors::kGraphNotNative.name);
  EXPECT_NE(refused.error().message.find("workflow tools"), std::string::npos);
}

TEST(Hosted, gets_its_configuration_as_written_and_what_each_template_yields) {
  FakeHost host(GiveBack());
  RunConfig config;
  config.run_id = "r";
  config.configurable = J("{'__hidden': 1, 'shown': 2}").as_object();
  const RunResult result =
      RunWith(MakeGraph({Native("n", kType,
                                "{'a': '{{inputs.x}}', 'l': ['{{inputs.x}}', 'v={{inputs.y}}!'], "
                                "'plain': 'text', 'open': '{{nowhere.z}}'}")}),
              host, "{'x': {'k': [1]}, 'y': '{{inputs.x}}'}", {}, config);
  ASSERT_TRUE(result.ok()) << result.error->message;
  ASSERT_EQ(host.calls.size(), 1u);
  const host::Call& call = host.calls[0];
  EXPECT_EQ(Text(call.config),
            Text(J("{'a': '{{inputs.x}}', 'l': ['{{inputs.x}}', 'v={{inputs.y}}!'], "
                   "'plain': 'text', 'open': '{{nowhere.z}}'}")));
  EXPECT_EQ(Text(call.values),
            Text(J("{'{{inputs.x}}': {'k': [1]}, 'v={{inputs.y}}!': 'v={{inputs.x}}!', "
                   "'{{nowhere.z}}': '{{nowhere.z}}'}")));
  EXPECT_EQ(call.instance, "r/n");
  EXPECT_EQ(Text(*call.run_config.Find("configurable")), Text(J("{'shown': 2, 'thread_id': 'r'}")));
  EXPECT_EQ(*call.state.Find("messages"), json::Value(json::Array()));
}

TEST(Hosted, writes_the_state_fields_that_the_host_gives) {
  FakeHost host([](const host::Call& call, host::Waiter&) {
    json::Value given = EntryOf(call, J("{'a': 1}"));
    given.mutable_object().Set("assistant_message", "hi");
    given.mutable_object().Set("messages", J("[{'role': 'user', 'content': 'x', 'id': 'm'}]"));
    given.mutable_object().Set("__trace", J("{'x': 1}"));
    return given;
  });
  const RunResult result = RunWith(MakeGraph({Native("n", kType, "{}")}), host, "{}");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(Entry(result, "n"), "{\"a\":1}");
  EXPECT_EQ(*result.state.Find("assistant_message"), json::Value("hi"));
  EXPECT_EQ(*result.state.Find("messages")->as_array()[0].Find("type"), json::Value("human"));
  EXPECT_EQ(result.state.Find("__trace"), nullptr);
}

TEST(Hosted, fails_on_what_is_no_update) {
  for (const auto& [given, code] :
       {std::pair{"5", errors::kHostProtocol}, {"{'node_results': 5}", errors::kGraphNodeFailed}}) {
    FakeHost host([text = given](const host::Call&, host::Waiter&) { return J(text); });
    const RunResult result = RunWith(MakeGraph({Native("n", kType, "{}")}), host, "{}");
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->code.name, code.name);
  }
}

TEST(Hosted, gets_secrets_and_lets_none_out) {
  StaticCredentials credentials;
  credentials.Add("key", "s3cret");
  credentials.Add("short", "u");  // as in the names of fields
  credentials.Add("slack_signing_secret", "from the default");
  FakeHost host([](const host::Call& call, host::Waiter& waiter) {
    const std::string key = call.values.Find("Bearer [[key]]")->as_string();
    waiter.Log(nodes::LogLevel::kWarning, "sent " + key);
    return EntryOf(call, json::Object{{"sent", key}, {key, 1}});
  });
  std::string log;
  Services services;
  services.credentials = &credentials;
  services.log = [&](nodes::LogLevel, std::string_view text) { log += text; };
  const RunResult result = RunWith(MakeGraph({Native("n", "SlackEventsParserNode",
                                                     "{'h': 'Bearer [[key]]', 's': '[[short]]'}")}),
                                   host, "{}", services);
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(Entry(result, "n"), R"({"sent":"Bearer [[key]]","Bearer [[key]]":1})");
  EXPECT_EQ(log, "sent Bearer [[key]]");
  ASSERT_EQ(host.calls.size(), 1u);
  EXPECT_EQ(*host.calls[0].values.Find("[[slack_signing_secret]]"),
            json::Value("from the default"));
  EXPECT_EQ(host.calls[0].secrets.size(), 3u);
}

TEST(Hosted, fails_with_the_class_of_what_was_raised) {
  FakeHost host([](const host::Call&, host::Waiter&) {
    return std::unexpected(host::Failure{
        Status{.code = errors::kNodesFailed, .message = "no such thing"}, "LookupError"});
  });
  Metrics metrics;
  Services services;
  services.metrics = &metrics;
  const RunResult result = RunWith(MakeGraph({Native("n", kType, "{}")}), host, "{}", services);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code.name, errors::kNodesFailed.name);
  EXPECT_EQ(result.error->message, "no such thing");
  EXPECT_EQ(result.error->error_type, "LookupError");
  EXPECT_EQ(result.error->node_id, "n");
  EXPECT_EQ(metrics.Get(kType, "node_host").invocations, 1u);
}

TEST(Hosted, is_told_to_end_when_the_run_is_out_of_time) {
  FakeHost host(
      [](const host::Call&, host::Waiter& waiter) -> std::expected<json::Value, host::Failure> {
        for (;;) {
          if (auto asked = waiter.Check(); !asked) {
            return std::unexpected(host::Failure{std::move(asked).error()});
          }
        }
      });
  RunConfig config;
  config.timeout = std::chrono::milliseconds(50);
  const RunResult result = RunWith(MakeGraph({Native("n", kType, "{}")}), host, "{}", {}, config);
  EXPECT_EQ(result.status, RunStatus::kTimedOut);
}

TEST(Hosted, is_tried_again_as_configured) {
  int visits = 0;
  FakeHost host([&](const host::Call& call,
                    host::Waiter&) -> std::expected<json::Value, host::Failure> {
    if (++visits == 1) {
      return std::unexpected(host::Failure{Status{.code = errors::kHostLost, .message = "lost"}});
    }
    return EntryOf(call, 1);
  });
  const auto config = ParseRunConfig(J("{'retry': {'count': 2, 'backoff_seconds': 0.001}}"));
  ASSERT_TRUE(config) << config.error().message;
  const RunResult result = RunWith(MakeGraph({Native("n", kType, "{}")}), host, "{}", {}, *config);
  EXPECT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(visits, 2);
}

TEST(Hosted, runs_as_a_step_of_a_sub_workflow) {
  FakeHost host(GiveBack());
  const RunResult result =
      RunWith(MakeGraph({Native("sub", "SubWorkflowNode",
                                "{'steps': [{'type': 'SetVariableNode', 'name': 's', 'variables': "
                                "{'v': 7}}, {'type': 'QueryClassifierNode', 'name': 'q', 'a': "
                                "'{{s.v}}', 'b': '{{inputs.x}}'}]}")}),
              host, "{'x': '{{s.v}}'}");
  ASSERT_TRUE(result.ok()) << result.error->message;
  ASSERT_EQ(host.calls.size(), 1u);
  EXPECT_EQ(host.calls[0].node, "q");
  EXPECT_EQ(Text(host.calls[0].config), Text(J("{'a': '{{s.v}}', 'b': '{{inputs.x}}'}")));
  EXPECT_EQ(Text(host.calls[0].values), Text(J("{'{{s.v}}': 7, '{{inputs.x}}': '{{s.v}}'}")));
  EXPECT_NE(Entry(result, "sub").find(R"("name":"q","result":{"values":)"), std::string::npos)
      << Entry(result, "sub");
}

}  // namespace
}  // namespace caisson::graph
