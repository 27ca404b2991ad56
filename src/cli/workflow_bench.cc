// SPDX-License-Identifier: Apache-2.0
// The stream of events beside bare writes of the same bytes, and a step of 100 code nodes beside
// the isolate pool's own throughput. Prints JSON lines for bench/run.py.
//
//   workflow_bench
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cli/event_stream.h"
#include "cli/isolation.h"
#include "graph/journal.h"
#include "graph/run.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

void Print(const char* what, double value, const char* unit, double control, const char* name,
           double target, bool is_time) {
  const double ratio = value / control;
  const bool ok = is_time ? ratio <= target : ratio >= target;
  std::printf(
      "{\"what\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",\"control\":%.3f,"
      "\"control_name\":\"%s\",\"ratio\":%.3f,\"target\":\"%s %.1f times\",\"ok\":%s}\n",
      what, value, unit, control, name, ratio, is_time ? "<=" : ">=", target,
      ok ? "true" : "false");
}

// A pipe with somebody who reads it.
class ReadPipe {
 public:
  ReadPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) Die("pipe");
    reader_ = std::thread([this] {
      std::vector<char> buffer(1 << 16);
      while (read(ends_[0], buffer.data(), buffer.size()) > 0) {
      }
    });
  }
  ~ReadPipe() {
    close(ends_[1]);
    reader_.join();
    close(ends_[0]);
  }
  ReadPipe(const ReadPipe&) = delete;
  ReadPipe& operator=(const ReadPipe&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }
  int end() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
  std::thread reader_;
};

workflow::Graph LoopOfEvents() {
  workflow::Graph graph;
  graph.entrypoint = "a";
  graph.nodes.push_back(
      workflow::BuiltinNode{"a", "SetVariableNode",
                            json::Read(R"({"variables": {"n": "{{inputs.n}}", "text": ")" +
                                       std::string(200, 'x') + R"(", "k": [1, 2]}})")
                                ->as_object()});
  graph.edges = {{"a", "a"}};
  return graph;
}

void StreamOfEvents(Console& console) {
  const auto graph = std::make_shared<const workflow::Graph>(LoopOfEvents());
  graph::MemoryJournal journal;
  graph::Services services;
  services.journal = &journal;
  graph::RunConfig config;
  config.budget.nodes = 8000;
  if (!graph::Run(*graph::Plan::Create(graph), json::Object{{"n", 1}}, config, services)) {
    Die("the run did not start");
  }
  std::vector<std::string> lines;
  double bytes = 0;
  for (const graph::KeptEvent& event : journal.events()) {
    lines.push_back(*json::Write(event.View().ToJson()) + "\n");
    bytes += static_cast<double>(lines.back().size());
  }
  double ours = 1e9;
  double bare = 1e9;
  for (int round = 0; round < 7; ++round) {
    const ReadPipe pipe;
    EventStream stream(console);
    if (!stream.Open(pipe.path())) Die("the stream cannot be opened");
    auto start = Clock::now();
    for (const graph::KeptEvent& event : journal.events()) {
      stream.OnEvent(event.View());
      if (event.kind == graph::EventKind::kNodeFinished) stream.Flush();
    }
    stream.Flush();
    ours = std::min(ours, Seconds(start));
    start = Clock::now();
    for (const std::string& line : lines) {
      if (write(pipe.end(), line.data(), line.size()) < 0) Die("write");
    }
    bare = std::min(bare, Seconds(start));
  }
  Print("events written to a pipe", bytes / ours / 1e6, "MB/s", bytes / bare / 1e6,
        "write(2) of the same lines", 0.3, false);
}

constexpr char kBody[] =
    "def run(self, state, config):\n"
    "  total = 0\n"
    "  for i in range(20000):\n"
    "    total += i\n"
    "  return {'total': total}\n";

void ParallelCode() {
  IsolationArguments arguments;
  auto pool = OpenIsolation(arguments);
  if (!pool || !(*pool)->Warm()) Die("the isolates cannot be started");
  workflow::Graph graph;
  graph.entrypoint = "n0";
  for (int i = 0; i < 100; ++i) {
    const std::string id = "n" + std::to_string(i);
    graph.nodes.push_back(workflow::CodeNode{
        id, {}, {}, "total = 0\nfor i in range(20000):\n    total += i\nreturn {'total': total}"});
    graph.edges.push_back({std::string(workflow::kStart), id});
  }
  const auto shared = std::make_shared<const workflow::Graph>(std::move(graph));
  const graph::Plan plan = *graph::Plan::Create(shared);
  graph::Services services;
  services.micropython = pool->get();
  isolate::Job job;
  job.source = kBody;
  job.self = json::Object{};
  job.state = json::Object{{"inputs", json::Object{}}};
  job.config = json::Object{{"configurable", json::Object{}}};
  double ours = 1e9;
  double bare = 1e9;
  for (int round = 0; round < 9; ++round) {
    auto start = Clock::now();
    const auto result = graph::Run(plan, json::Object{}, {}, services);
    if (!result || !result->ok()) Die("the run failed");
    ours = std::min(ours, Seconds(start));
    std::atomic<int> next{0};
    start = Clock::now();
    std::vector<std::thread> callers;
    for (int i = 0; i < graph::kMaxConcurrency; ++i) {
      callers.emplace_back([&] {
        while (next.fetch_add(1) < 100) {
          if (!(*pool)->Call(job)) Die("a call failed");
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    bare = std::min(bare, Seconds(start));
  }
  Print("a step of 100 code nodes", ours * 1e3, "ms", bare * 1e3, "the pool alone, 100 calls", 1.3,
        true);
}

}  // namespace
}  // namespace caisson::cli

int main() {
  caisson::cli::Console console;
  caisson::cli::StreamOfEvents(console);
  caisson::cli::ParallelCode();
}
