// SPDX-License-Identifier: Apache-2.0
// Runs one IR per line of standard input, {"ir": {...}, "inputs": any, "recursion_limit"?: n,
// "items"?: {namespace: {key: value}}, "answers"?: [any], "loopback"?: ["127.0.0.1:80"],
// "ca_file"?: path}, and answers each with the final state, the order of the visits and what the
// stores hold, or with where and why it failed. Workflows with code nodes cannot run here.
#include <iostream>
#include <string>

#include "graph/journal.h"
#include "graph/run.h"
#include "graph/stream.h"
#include "http/outbound.h"
#include "json/reader.h"
#include "json/writer.h"
#include "nodes/memory_stores.h"
#include "workflow/loader.h"

namespace caisson {
namespace {

// The order of the visits, and the state before and after each step.
class Watcher final : public graph::EventSink {
 public:
  explicit Watcher(nodes::State initial)
      : stream_({graph::StreamMode::kValues}, graph::Progress(std::move(initial)),
                [this](const json::Value& line) { values_.push_back(*line.Find("data")); }) {}
  void OnEvent(const graph::Event& event) override {
    if (event.kind == graph::EventKind::kNodeFinished) order_.emplace_back(event.node_id);
    stream_.OnEvent(event);
  }
  json::Value TakeOrder() { return std::move(order_); }
  json::Value TakeValues() { return std::move(values_); }

 private:
  json::Array order_;
  json::Array values_;
  graph::Stream stream_;
};

json::Value Failed(std::string_view stage, std::string_view error) {
  return json::Object{{"ok", false}, {"stage", stage}, {"error", error}};
}

void Fill(nodes::MemoryItems& items, const json::Value* given) {
  if (given == nullptr) return;
  for (const auto& [space, entries] : given->as_object()) {
    for (const auto& [key, value] : entries.as_object()) {
      const auto filled = items.Update(
          {{space}, key}, [&](const json::Value*) -> Result<json::Value> { return value; });
      if (!filled) std::cerr << "run_tool: " << filled.error().message << '\n';
    }
  }
}

// The servers of the test, and nothing else.
std::unique_ptr<http::Outbound> NetworkOf(const json::Value& request) {
  http::OutboundPolicy policy;
  if (const json::Value* targets = request.Find("loopback")) {
    for (const json::Value& target : targets->as_array()) {
      policy.loopback.targets.push_back(target.as_string());
    }
  }
  if (const json::Value* file = request.Find("ca_file")) policy.ca_file = file->as_string();
  return http::MakeOutbound(std::move(policy));
}

json::Array Kept(const nodes::MemoryBlobs& blobs) {
  json::Array all;
  for (const auto& blob : blobs.all()) {
    all.emplace_back(json::Array{blob.content, blob.name, blob.mime_type});
  }
  return all;
}

// Goes on from each question with the next of the answers.
Result<graph::RunResult> RunThrough(const graph::Plan& plan, const json::Value& request,
                                    const graph::RunConfig& config, graph::Services services,
                                    json::Array& questions) {
  const json::Value& inputs = *request.Find("inputs");
  const json::Value* answers = request.Find("answers");
  if (answers == nullptr) return graph::Run(plan, inputs, config, services);
  graph::MemoryJournal journal;
  services.journal = &journal;
  CAISSON_ASSIGN(graph::RunResult result, graph::Run(plan, inputs, config, services));
  for (const json::Value& answer : answers->as_array()) {
    if (result.status != graph::RunStatus::kInterrupted) break;
    graph::Progress progress(graph::InitialState(inputs, config, config.run_id));
    for (const graph::KeptEvent& event : journal.events()) CAISSON_TRY(progress.Apply(event));
    json::Object given;
    for (const graph::Question& question : result.questions) {
      questions.push_back(question.value);
      given.Set(question.node_path, answer);
    }
    CAISSON_ASSIGN(result, graph::Resume(plan, progress, given, config, services));
  }
  return result;
}

json::Value Answer(const json::Value& request) {
  const workflow::LoadResult loaded =
      workflow::LoadIr(*request.Find("ir"), {.enforce_node_policy = false});
  if (loaded.graph == nullptr) {
    for (const workflow::Diagnostic& diagnostic : loaded.diagnostics) {
      if (diagnostic.severity == workflow::Severity::kError) {
        return Failed("build", diagnostic.message);
      }
    }
    return Failed("build", "the IR was refused");
  }
  const auto plan = graph::Plan::Create(loaded.graph);
  if (!plan) return Failed("build", plan.error().message);
  graph::RunConfig config;
  config.run_id = "t";
  if (const json::Value* limit = request.Find("recursion_limit")) {
    config.recursion_limit = static_cast<int>(limit->as_int());
  }
  const json::Value& inputs = *request.Find("inputs");
  Watcher watcher(graph::InitialState(inputs, config, config.run_id));
  graph::Services services;
  services.events = &watcher;
  nodes::MemoryBlobs blobs;
  nodes::MemoryItems items;
  Fill(items, request.Find("items"));
  services.blobs = &blobs;
  services.items = &items;
  const auto network = NetworkOf(request);
  services.network = network.get();
  json::Array questions;
  const auto result = RunThrough(*plan, request, config, services, questions);
  if (!result) return Failed("run", result.error().message);
  if (!result->ok()) return Failed("run", result->error->message);
  return json::Object{{"ok", true},
                      {"state", result->state},
                      {"order", watcher.TakeOrder()},
                      {"values", watcher.TakeValues()},
                      {"questions", std::move(questions)},
                      {"items", items.All()},
                      {"blobs", Kept(blobs)}};
}

}  // namespace
}  // namespace caisson

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = caisson::json::Read(line);
    if (!request) {
      std::cerr << "run_tool: " << request.error().message << '\n';
      return 2;
    }
    const auto text = caisson::json::Write(caisson::Answer(*request), {.ensure_ascii = true});
    std::cout << (text ? *text : R"({"ok":null,"error":"the state is not JSON"})") << std::endl;
  }
}
