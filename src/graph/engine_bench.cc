// SPDX-License-Identifier: Apache-2.0
// What a step of the engine costs, the best of several rounds. Prints JSON lines for bench/run.py.
//
//   engine_bench [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "graph/run.h"
#include "json/reader.h"
#include "workflow/ir.h"

namespace caisson::graph {
namespace {

using Clock = std::chrono::steady_clock;

class CountingSink final : public EventSink {
 public:
  void OnEvent(const Event&) override { ++count; }
  std::uint64_t count = 0;
};

workflow::Node Native(std::string id, std::string type, std::string_view config) {
  return workflow::BuiltinNode{std::move(id), std::move(type), json::Read(config)->as_object()};
}

// A chain of `length` nodes; each takes a value from the one before it.
Plan Chain(int length) {
  auto graph = std::make_shared<workflow::Graph>();
  graph->entrypoint = "n0";
  for (int i = 0; i < length; ++i) {
    const std::string previous = "n" + std::to_string(std::max(i - 1, 0));
    graph->nodes.push_back(Native(
        "n" + std::to_string(i), "SetVariableNode",
        R"({"variables":{"a":"{{)" + previous + R"(.a}}","b":"n={{inputs.n}}","c":{"k":[1,2]}}})"));
    if (i > 0) graph->edges.push_back({previous, "n" + std::to_string(i)});
  }
  return *Plan::Create(std::move(graph));
}

// A loop over a list: a step of ForLoopNode, a branch, a step of SetVariableNode, and so on.
Plan Loop() {
  auto graph = std::make_shared<workflow::Graph>();
  graph->entrypoint = "each";
  graph->nodes.push_back(Native("each", "ForLoopNode", R"({"items":"{{inputs.items}}"})"));
  graph->nodes.push_back(
      Native("body", "SetVariableNode", R"({"variables":{"seen":"{{each.current_item}}"}})"));
  graph->edges.push_back({"body", "each"});
  graph->conditional_edges.push_back(
      {"each", "node_results.each.done", {{"false", "body"}, {"true", "__end__"}}, {}});
  return *Plan::Create(std::move(graph));
}

// Microseconds per visit of the best round.
double Measure(const Plan& plan, const json::Value& inputs, const Services& services, int rounds) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const auto result = Run(plan, inputs, {}, services);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (!result || !result->ok()) {
      std::fprintf(stderr, "the run failed: %s\n",
                   result ? result->error->message.c_str() : result.error().message.c_str());
      std::exit(1);
    }
    best = std::min(best, took.count() / static_cast<double>(result->node_visits));
  }
  return best;
}

// Best time of a node in microseconds, as a line for bench/run.py; `target` 0 for none.
void Print(const char* what, double value, double target = 0) {
  std::printf("{\"what\":\"%s, a node\",\"value\":%.3f,\"unit\":\"us\"", what, value);
  if (target != 0) {
    std::printf(",\"target\":\"< %.0f us\",\"ok\":%s", target, value < target ? "true" : "false");
  }
  std::printf("}\n");
}

void Report(int rounds) {
  json::Array items;
  for (int i = 0; i < 2000; ++i) items.emplace_back(i);
  const json::Value inputs = json::Object{{"n", 1}, {"items", std::move(items)}};
  CountingSink sink;
  Services with_events;
  with_events.events = &sink;
  const Plan chain = Chain(1000);
  const Plan long_chain = Chain(9000);
  const Plan loop = Loop();
  Print("chain of 1,000 nodes", Measure(chain, inputs, {}, rounds), 20);
  Print("chain of 9,000 nodes", Measure(long_chain, inputs, {}, rounds), 20);
  Print("loop over 2,000 items", Measure(loop, inputs, {}, rounds), 20);
  Print("chain of 1,000 nodes with events", Measure(chain, inputs, with_events, rounds));
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const Plan plan = Chain(1000);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    best = std::min(best, took.count() / static_cast<double>(plan.node_count()));
  }
  Print("making and planning a chain of 1,000 nodes", best);
}

}  // namespace
}  // namespace caisson::graph

int main(int argc, char** argv) {
  caisson::graph::Report(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
}
