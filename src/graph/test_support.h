// SPDX-License-Identifier: Apache-2.0
// For tests: short ways to write graphs and to run them, a runtime that is a function, and a sink
// that keeps what it is told.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/run.h"
#include "workflow/ir.h"

namespace caisson::graph {

// Parses JSON; single quotes stand for double ones. Ends the program when the text is wrong.
json::Value J(std::string text);

workflow::Node Native(std::string id, std::string type, std::string config);
// SetVariableNode with these variables.
workflow::Node Set(std::string id, std::string variables);
workflow::Node Code(std::string id, std::string body, std::string config = "{}");
workflow::Node Sub(std::string id, workflow::Graph graph);

// Edges are "a>b"; "START" and "END" are the sentinels. The entrypoint is the first node.
workflow::Graph MakeGraph(std::vector<workflow::Node> nodes,
                          const std::vector<std::string>& edges = {},
                          std::vector<workflow::ConditionalEdge> branches = {});

Result<Plan> MakePlan(workflow::Graph graph);
// Plans and runs; ends the program when either is refused.
RunResult RunIt(workflow::Graph graph, std::string inputs = "{}", const RunConfig& config = {},
                const Services& services = {});
// node_results[id] of a result as JSON text, "" when there is none.
std::string Entry(const RunResult& result, std::string_view id);
std::string Text(const json::Value& value);

class FakeRuntime final : public isolate::Runtime {
 public:
  using Answer = std::function<Result<isolate::Outcome>(const isolate::Job&)>;
  explicit FakeRuntime(Answer answer) : answer_(std::move(answer)) {}
  Result<isolate::Outcome> Call(const isolate::Job& job) override { return answer_(job); }
  json::Value Describe() const override { return json::Object{{"name", "fake"}}; }

 private:
  Answer answer_;
};
isolate::Outcome Value(json::Value value);
isolate::Outcome FaultOf(isolate::Fault fault, std::string message = "");

class Recorder final : public EventSink {
 public:
  void OnEvent(const Event& event) override {
    const std::lock_guard lock(mutex_);
    events.push_back(event.ToJson());
  }
  // "node_started a 1", one a line: kind, node and step.
  std::string Lines() const;
  std::vector<json::Value> events;

 private:
  std::mutex mutex_;
};

}  // namespace caisson::graph
