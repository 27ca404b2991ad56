// SPDX-License-Identifier: Apache-2.0
// What recording costs: a step of a loop without a journal, in memory and in the store; the bytes
// that a step of a large state writes; the memory of runs that wait. Prints JSON lines for
// bench/durable_runs.py.
//
//   runs_bench [rounds]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "json/reader.h"
#include "runs/runs.h"
#include "store/sqlite/workflow_store.h"

namespace caisson::runs {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSteps = 1000;

workflow::Node Native(std::string id, std::string type, std::string_view config) {
  return workflow::BuiltinNode{std::move(id), std::move(type), json::Read(config)->as_object()};
}

workflow::Graph Looped(std::string_view variables) {
  workflow::Graph graph;
  graph.entrypoint = "a";
  graph.nodes.push_back(
      Native("a", "SetVariableNode", R"({"variables": )" + std::string(variables) + "}"));
  graph.edges = {{"a", "a"}};
  return graph;
}

graph::Plan PlanOf(const workflow::Graph& graph) {
  return *graph::Plan::Create(std::make_shared<const workflow::Graph>(graph));
}

// The loop ends at its budget of steps.
Settings Limited(int steps) {
  Settings settings;
  settings.document = json::Object{{"budget", json::Object{{"nodes", steps}}}};
  return settings;
}

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

void CheckEnd(const Result<graph::RunResult>& result, int steps) {
  if (!result) Die(result.error().message);
  if (result->steps != steps) {
    Die("the run ended early: " + (result->error ? result->error->message : std::string("?")));
  }
}

class Bench {
 public:
  Bench() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "caisson-bench-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    store_ =
        store::sqlite::OpenWorkflows(directory_ + "/runs.db", store::sqlite::Durability::kNormal)
            .value();
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Microseconds a step.
  double Off(const workflow::Graph& graph, const json::Value& inputs) {
    const graph::Plan plan = PlanOf(graph);
    const graph::RunConfig config = *ConfigOf(Limited(kSteps), "off");
    return Timed([&] { return graph::Run(plan, inputs, config, {}); });
  }
  double InMemory(const workflow::Graph& graph, const json::Value& inputs) {
    const graph::Plan plan = PlanOf(graph);
    const graph::RunConfig config = *ConfigOf(Limited(kSteps), "memory");
    graph::MemoryJournal journal;
    graph::Services services;
    services.journal = &journal;
    return Timed([&] { return graph::Run(plan, inputs, config, services); });
  }
  double InStore(const workflow::Graph& graph, const json::Value& inputs, int steps = kSteps) {
    const graph::Plan plan = PlanOf(graph);
    const Settings settings = Limited(steps);
    const graph::RunConfig config = *ConfigOf(settings, "run-" + std::to_string(++runs_));
    auto record = Runs(*store_).Begin(graph, "bench", settings, config, inputs);
    if (!record) Die(record.error().message);
    graph::Services services;
    services.journal = record->get();
    return Timed([&] { return graph::Run(plan, inputs, config, services); }, steps);
  }

  // Resident bytes of this process for each run that waits for an answer.
  double Waiting(int count) {
    workflow::Graph graph;
    graph.entrypoint = "ask";
    graph.nodes.push_back(Native("ask", "HumanInputNode", "{}"));
    const graph::Plan plan = PlanOf(graph);
    const auto start_one = [&] {
      const Settings settings;
      const graph::RunConfig config = *ConfigOf(settings, "wait-" + std::to_string(++runs_));
      auto record = Runs(*store_).Begin(graph, "bench", settings, config, json::Object{});
      if (!record) Die(record.error().message);
      graph::Services services;
      services.journal = record->get();
      const auto result = graph::Run(plan, json::Object{}, config, services);
      if (!result || result->status != graph::RunStatus::kInterrupted) Die("it does not wait");
    };
    for (int i = 0; i < 200; ++i) start_one();
    const double before = Resident();
    for (int i = 0; i < count; ++i) start_one();
    return (Resident() - before) / count;
  }

 private:
  template <typename RunIt>
  static double Timed(RunIt run_it, int steps = kSteps) {
    const auto start = Clock::now();
    const auto result = run_it();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    CheckEnd(result, steps);
    return took.count() / steps;
  }

  static double Resident() {
    malloc_trim(0);
    long pages = 0;
    std::ifstream statm("/proc/self/statm");
    statm >> pages >> pages;
    return static_cast<double>(pages) * 4096;
  }

  std::string directory_;
  std::unique_ptr<store::WorkflowStore> store_;
  int runs_ = 0;
};

// What this process has given to write(2) and its like (proc_pid_io(5), wchar).
double Written() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    double value = 0;
    io >> value;
    if (name == "wchar:") return value;
  }
  Die("/proc/self/io cannot be read");
}

void Print(const char* what, double value, const char* unit) {
  std::printf("{\"what\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", what, value, unit);
}

void Report(int rounds) {
  const workflow::Graph loop = Looped(R"({"n": "{{inputs.n}}", "k": [1, 2]})");
  const json::Value inputs = json::Object{{"n", 1}};
  double off = 1e9;
  double memory = 1e9;
  double stored = 1e9;
  Bench bench;
  for (int i = 0; i < rounds; ++i) {
    off = std::min(off, bench.Off(loop, inputs));
    memory = std::min(memory, bench.InMemory(loop, inputs));
    stored = std::min(stored, bench.InStore(loop, inputs));
  }
  Print("a step of a loop, not recorded", off, "us");
  Print("a step of a loop, recorded in memory", memory, "us");
  Print("a step of a loop, recorded in SQLite", stored, "us");

  const std::string kilobyte = "{\"text\": \"" + std::string(1000, 'x') + "\"}";
  const json::Value large = json::Object{{"large", std::string(1'000'000, 'y')}};
  const double before = Written();
  bench.InStore(Looped(kilobyte), large, 3000);
  Print("bytes written for a step that changes 1 KB of a state of 1 MB",
        (Written() - before) / 3000, "B");
  Print("memory of a run that waits for an answer", bench.Waiting(10'000), "B");
}

}  // namespace
}  // namespace caisson::runs

int main(int argc, char** argv) {
  caisson::runs::Report(argc > 1 ? std::max(1, std::atoi(argv[1])) : 10);
}
