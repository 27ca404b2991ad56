// SPDX-License-Identifier: Apache-2.0
#include "graph/needs.h"

#include <gtest/gtest.h>

#include <thread>

#include "graph/test_support.h"
#include "nodes/memory_stores.h"

namespace caisson::graph {
namespace {

std::shared_ptr<const workflow::Graph> GraphOf(const std::string& type, json::Object config) {
  auto graph = std::make_shared<workflow::Graph>();
  graph->entrypoint = "n";
  graph->nodes.push_back(workflow::BuiltinNode{"n", type, std::move(config)});
  return graph;
}

std::string CodeOf(const Result<void>& result) {
  return result ? "ok" : std::string(result.error().code.name);
}

const json::Object kAppend{{"key", "k"}, {"content", "c"}};

TEST(Needs, are_told_before_the_run_begins) {
  nodes::MemoryBlobs blobs;
  nodes::MemoryItems items;
  const auto network = http::MakeOutbound({});
  Services all;
  all.blobs = &blobs;
  all.items = &items;
  all.network = network.get();
  struct Case {
    const char* type;
    json::Object config;
    const char* code;
  };
  const json::Object step{{"type", "RSSNode"}, {"sources", "http://x"}};
  const Case cases[] = {
      {"HttpRequestNode", {{"url", "http://x"}}, "outbound.no_network"},
      {"FileUploadNode", {{"content", "c"}, {"filename", "f"}}, "nodes.no_blobs"},
      {"GraphStoreAppendMessageNode", kAppend, "nodes.no_items"},
      {"SubWorkflowNode", {{"steps", json::Array{step}}}, "outbound.no_network"},
      {"NoOpTaskNode", {}, "ok"},
  };
  for (const Case& given : cases) {
    const auto plan = Plan::Create(GraphOf(given.type, given.config));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(CodeOf(CheckNeeds(*plan, {})), given.code) << given.type;
    EXPECT_EQ(CodeOf(CheckNeeds(*plan, all)), "ok") << given.type;
    const auto run = graph::Run(*plan, json::Object(), {.run_id = "t"}, {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->error ? run->error->code.name : "ok", given.code) << given.type;
  }
}

TEST(Needs, no_message_is_lost_when_many_are_added_at_once) {
  nodes::MemoryItems items;
  const auto plan = Plan::Create(GraphOf("GraphStoreAppendMessageNode", kAppend));
  ASSERT_TRUE(plan);
  Services services;
  services.items = &items;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 4; ++i) {
      writers.emplace_back([&] {
        for (int j = 0; j < 25; ++j) {
          const auto run = graph::Run(*plan, json::Object(), {.run_id = "t"}, services);
          EXPECT_TRUE(run && run->ok());
        }
      });
    }
  }
  const auto item = items.Get({{"agent_chat_history"}, "k"});
  ASSERT_TRUE(item && *item);
  EXPECT_EQ((*item)->Find("version")->as_int(), 100);
  EXPECT_EQ((*item)->Find("messages")->as_array().size(), 100u);
}

// Where nothing ever answers; one address fails at once.
class Silence final : public http::Outbound {
 public:
  Result<http::OutboundResponse> Send(const http::OutboundRequest& request, const http::BodySink&,
                                      std::stop_token stop) override {
    if (request.url == "http://fails") return Fail(ErrorCode{"outbound.broken"}, "it broke");
    const auto until = std::chrono::steady_clock::now() + request.times.total;
    while (!stop.stop_requested() && !request.give_up() &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Fail(ErrorCode{"outbound.stopped"}, "stopped");
  }
  Result<http::MailOutcome> SendMail(const http::MailRequest&, std::stop_token) override {
    return Fail(ErrorCode{"outbound.stopped"}, "stopped");
  }
};

TEST(Needs, a_request_ends_with_the_run) {
  Silence silence;
  const auto plan = Plan::Create(GraphOf("HttpRequestNode", {{"url", "http://x"}}));
  ASSERT_TRUE(plan);
  Services services;
  services.network = &silence;
  RunConfig config{.timeout = std::chrono::milliseconds(50), .run_id = "t"};
  auto run = graph::Run(*plan, json::Object(), config, services);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status, RunStatus::kTimedOut);
  std::stop_source source;
  services.stop = source.get_token();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    source.request_stop();
  });
  run = graph::Run(*plan, json::Object(), {.run_id = "t"}, services);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status, RunStatus::kCancelled);
}

TEST(Needs, a_request_ends_when_another_node_of_the_step_fails) {
  Silence silence;
  auto graph = std::make_shared<workflow::Graph>();
  graph->entrypoint = "a";
  graph->nodes.push_back(workflow::BuiltinNode{"a", "NoOpTaskNode", {}});
  graph->nodes.push_back(workflow::BuiltinNode{"b", "HttpRequestNode", {{"url", "http://x"}}});
  graph->nodes.push_back(workflow::BuiltinNode{"c", "HttpRequestNode", {{"url", "http://fails"}}});
  graph->edges = {{"a", "b"}, {"a", "c"}};
  const auto plan = Plan::Create(graph);
  ASSERT_TRUE(plan) << plan.error().message;
  Services services;
  services.network = &silence;
  const auto run = graph::Run(*plan, json::Object(), {.run_id = "t"}, services);
  ASSERT_TRUE(run && run->error);
  EXPECT_EQ(run->error->node_id, "c");
  EXPECT_EQ(run->error->message, "HTTP request failed: it broke");
}

}  // namespace
}  // namespace caisson::graph
