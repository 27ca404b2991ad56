// SPDX-License-Identifier: Apache-2.0
// Runs that stop and go on: at a question, after a failure, after a crash at any point.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "errors/graph.h"
#include "errors/nodes.h"
#include "graph/test_support.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::graph {
namespace {

std::string NewId() {
  static std::atomic<int> next{0};
  return "id-" + std::to_string(++next);
}

// What a store does to a run: keeps its events as text, and reads them back.
class Record final : public Journal {
 public:
  Result<void> Append(std::span<const KeptEvent> events) override {
    if (commits_left_ == 0) return Fail(errors::kGraphEvent, "the disk is full");
    --commits_left_;
    for (const KeptEvent& event : events) lines.push_back(*json::Write(event.View().ToJson()));
    return {};
  }
  void FailAfter(int commits) { commits_left_ = commits; }

  std::vector<std::string> lines;

 private:
  int commits_left_ = 1 << 20;
};

RunConfig WithId() {
  RunConfig config;
  config.run_id = "run";
  return config;
}

Progress Fold(const std::vector<std::string>& lines, std::string inputs = "{}") {
  Progress progress(InitialState(J(std::move(inputs)), WithId(), "run"));
  for (const std::string& line : lines) {
    auto event = KeptEvent::FromJson(*json::Read(line));
    EXPECT_TRUE(event.has_value()) << line << (event ? "" : event.error().message);
    if (!event) break;
    auto applied = progress.Apply(*event);
    EXPECT_TRUE(applied.has_value()) << line << (applied ? "" : applied.error().message);
    // The form in which it is kept says the same.
    if (progress.sequence() % 3 == 0) {
      auto again = Progress::FromJson(*json::Read(*json::Write(progress.ToJson())));
      EXPECT_TRUE(again.has_value());
      if (again) progress = *std::move(again);
    }
  }
  return progress;
}

struct Outcome {
  RunResult result;
  std::vector<std::string> lines;
};

Outcome Start(const Plan& plan, const Services& given = {}, RunConfig config = WithId()) {
  Record record;
  Services services = given;
  services.journal = &record;
  services.new_message_id = NewId;
  auto result = graph::Run(plan, J("{}"), config, services);
  EXPECT_TRUE(result.has_value());
  return {*result, record.lines};
}

Result<Outcome> GoOn(const Plan& plan, const Outcome& before, std::string answers,
                     const Services& given = {}, RunConfig config = WithId()) {
  Record record;
  record.lines = before.lines;
  Services services = given;
  services.journal = &record;
  services.new_message_id = NewId;
  CAISSON_ASSIGN(RunResult result, Resume(plan, Fold(before.lines),
                                          J(std::move(answers)).as_object(), config, services));
  return Outcome{std::move(result), record.lines};
}

std::string Ask(std::string prompt) { return "{'prompt': '" + prompt + "'}"; }

TEST(Resume, goes_on_with_the_answer_to_a_question) {
  const Plan plan =
      *MakePlan(MakeGraph({Set("a", "{'x': 1}"), Native("ask", "HumanInputNode", Ask("Go?")),
                           Set("b", "{'said': '{{ask.response}}'}")},
                          {"a>ask", "ask>b"}));
  const Outcome first = Start(plan);
  EXPECT_EQ(first.result.status, RunStatus::kInterrupted);
  EXPECT_FALSE(first.result.error.has_value());
  ASSERT_EQ(first.result.questions.size(), 1u);
  EXPECT_EQ(first.result.questions[0].node_path, "ask");
  EXPECT_EQ(Text(first.result.questions[0].value), R"({"message":"Go?","kind":"human"})");
  EXPECT_EQ(Fold(first.lines).questions(), first.result.questions);

  const auto second = GoOn(plan, first, "{'ask': ' yes '}");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->result.status, RunStatus::kSucceeded);
  EXPECT_EQ(second->result.steps, 3);
  EXPECT_EQ(Text(*second->result.state.Find("node_results")),
            R"({"a":{"x":1},"ask":{"response":" yes "},"b":{"said":" yes "}})");
  EXPECT_EQ(second->result.state.Find("messages")->as_array()[0].Find("content")->as_string(),
            "yes");
  EXPECT_EQ(second->result.node_visits, 4u);  // the question twice
}

TEST(Resume, without_an_answer_asks_again) {
  const Plan plan = *MakePlan(MakeGraph({Native("ask", "HumanInputNode", Ask("Go?"))}));
  const auto second = GoOn(plan, Start(plan), "{}");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->result.status, RunStatus::kInterrupted);
  EXPECT_EQ(second->result.questions.size(), 1u);
}

TEST(Resume, refuses_an_answer_that_nobody_waits_for) {
  const Plan plan = *MakePlan(MakeGraph({Native("ask", "HumanInputNode", Ask("Go?"))}));
  const auto second = GoOn(plan, Start(plan), "{'other': 1}");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, errors::kGraphAnswer);
  EXPECT_EQ(second.error().message, "the node 'other' does not wait for an answer; 'ask' waits");
}

TEST(Resume, keeps_what_the_siblings_of_a_question_gave) {
  const Plan plan = *MakePlan(
      MakeGraph({Set("start", "{}"), Native("ask1", "HumanInputNode", Ask("1")),
                 Native("ask2", "HumanInputNode", Ask("2")), Set("side", "{'k': 5}"),
                 Set("end", "{'sum': '{{side.k}}{{ask1.response}}{{ask2.response}}'}")},
                {"start>ask1", "start>ask2", "start>side", "ask1>end", "ask2>end", "side>end"}));
  const Outcome first = Start(plan);
  EXPECT_EQ(first.result.questions.size(), 2u);
  const auto second = GoOn(plan, first, "{'ask2': 'b'}");
  ASSERT_TRUE(second.has_value());
  ASSERT_EQ(second->result.questions.size(), 1u);
  EXPECT_EQ(second->result.questions[0].node_path, "ask1");
  const auto third = GoOn(plan, *second, "{'ask1': 'a'}");
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(Entry(third->result, "end"), R"({"sum":"5ab"})");
  EXPECT_EQ(third->result.node_visits, 1u + 3 + 1 + 1 + 1 + 1);  // ask2 was answered at once
}

TEST(Resume, asks_from_within_subgraphs) {
  const auto inner = MakeGraph({Set("x", "{'v': 1}"), Native("ask/it", "HumanInputNode", Ask("?")),
                                Set("y", "{'w': '{{x.v}}'}")},
                               {"x>ask/it", "ask/it>y"});
  const Plan plan = *MakePlan(
      MakeGraph({Sub("outer", MakeGraph({Sub("mid", inner)})), Set("end", "{'w': '{{y.w}}'}")},
                {"outer>end"}));
  const Outcome first = Start(plan);
  ASSERT_EQ(first.result.questions.size(), 1u);
  EXPECT_EQ(first.result.questions[0].node_path, "outer/mid/ask~1it");
  const auto second = GoOn(plan, first, "{'outer/mid/ask~1it': 3}");
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(Entry(second->result, "end"), R"({"w":1})");
  EXPECT_EQ(second->result.status, RunStatus::kSucceeded);
}

TEST(Resume, goes_on_after_a_failure_without_what_had_finished) {
  std::map<std::string, int> calls;
  FakeRuntime runtime([&](const isolate::Job& job) -> Result<isolate::Outcome> {
    const std::string name = job.self.Find("name")->as_string();
    if (++calls[name] == 1 && name == "bad") return FaultOf(isolate::Fault::kRaised, "not yet");
    return Value(json::Object{{"name", name}});
  });
  Services services;
  services.micropython = &runtime;
  RunConfig config = WithId();
  config.max_concurrency = 1;
  const Plan plan = *MakePlan(
      MakeGraph({Set("s", "{}"), Code("a", "return {}", "{'name': 'a'}"),
                 Code("bad", "return {}", "{'name': 'bad'}"), Set("end", "{'n': '{{bad.name}}'}")},
                {"s>a", "s>bad", "a>end", "bad>end"}));
  const Outcome first = Start(plan, services, config);
  EXPECT_EQ(first.result.status, RunStatus::kFailed);
  const auto second = GoOn(plan, first, "{}", services, config);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->result.status, RunStatus::kSucceeded);
  EXPECT_EQ(Entry(second->result, "end"), R"({"n":"bad"})");
  EXPECT_EQ(calls["a"], 1);
  EXPECT_EQ(calls["bad"], 2);
}

TEST(Resume, refuses_a_workflow_without_the_node_that_the_run_was_at) {
  const Plan plan = *MakePlan(MakeGraph({Native("ask", "HumanInputNode", Ask("Go?"))}));
  const Plan other = *MakePlan(MakeGraph({Set("a", "{}")}));
  const auto second = GoOn(other, Start(plan), "{}");
  ASSERT_TRUE(second.has_value());
  ASSERT_TRUE(second->result.error.has_value());
  EXPECT_EQ(second->result.error->code, errors::kGraphOtherWorkflow);
}

TEST(Question, needs_a_run_that_is_recorded) {
  const RunResult result = RunIt(MakeGraph({Native("ask", "HumanInputNode", Ask("Go?"))}));
  EXPECT_EQ(result.status, RunStatus::kFailed);
  EXPECT_EQ(result.error->code, errors::kGraphNoJournal);
}

TEST(Journal, is_told_before_the_sink) {
  struct Both final : Journal, EventSink {
    Result<void> Append(std::span<const KeptEvent> events) override {
      kept += events.size();
      return {};
    }
    void OnEvent(const Event& event) override {
      EXPECT_LE(event.sequence, kept);
      ++told;
    }
    std::size_t kept = 0;
    std::size_t told = 0;
  } both;
  Services services;
  services.journal = &both;
  services.events = &both;
  RunIt(MakeGraph({Set("a", "{}"), Set("b", "{}")}, {"a>b"}), "{}", {}, services);
  EXPECT_EQ(both.kept, 8u);
  EXPECT_EQ(both.told, both.kept);
}

TEST(Journal, that_fails_ends_the_run_which_goes_on_from_what_was_kept) {
  const Plan plan = *MakePlan(
      MakeGraph({Set("a", "{'v': 1}"), Set("b", "{'v': '{{a.v}}'}"), Set("c", "{'v': '{{b.v}}'}")},
                {"a>b", "b>c"}));
  for (int commits = 0; commits < 4; ++commits) {
    Record record;
    record.FailAfter(commits);
    Services services;
    services.journal = &record;
    const auto result = graph::Run(plan, J("{}"), WithId(), services);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->status, RunStatus::kFailed);
    EXPECT_EQ(result->error->code, errors::kGraphEvent);
    const auto rest = GoOn(plan, {*result, record.lines}, "{}");
    ASSERT_TRUE(rest.has_value());
    EXPECT_EQ(Entry(rest->result, "c"), R"({"v":1})");
  }
}

TEST(Journal, refuses_what_json_cannot_hold) {
  FakeRuntime runtime([&](const isolate::Job&) -> Result<isolate::Outcome> {
    return Value(json::Object{{"deep", json::Array{1, std::numeric_limits<double>::infinity()}}});
  });
  Services services;
  services.micropython = &runtime;
  const Plan plan = *MakePlan(MakeGraph({Code("c", "return {}")}));
  EXPECT_EQ(graph::Run(plan, J("{}"), {}, services)->status, RunStatus::kSucceeded);
  const Outcome recorded = Start(plan, services);
  ASSERT_TRUE(recorded.result.error.has_value());
  EXPECT_EQ(recorded.result.error->code, errors::kGraphNotRecordable);
  EXPECT_NE(recorded.result.error->message.find("$.deep[1]"), std::string::npos);
}

// A workflow with everything that a crash can fall into: loops, parallel nodes, subgraphs,
// branches, messages.
Plan RandomPlan(std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto graph = [&](auto& self, int depth, const std::string& prefix) -> workflow::Graph {
    std::vector<workflow::Node> nodes;
    std::vector<std::string> edges;
    std::vector<workflow::ConditionalEdge> branches;
    const int count = 2 + pick(4);
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      const std::string id = prefix + "n" + std::to_string(i);
      const int kind = pick(depth < 2 ? 5 : 4);
      if (kind == 0) {
        nodes.push_back(Code(id, "return {}", "{'node': '" + id + "'}"));
      } else if (kind == 1) {
        nodes.push_back(Set(id, "{'messages': 'from " + id + "', 'v': " + std::to_string(i) + "}"));
      } else if (kind == 4) {
        nodes.push_back(Sub(id, self(self, depth + 1, id + "_")));
      } else {
        nodes.push_back(Set(id, "{'v': '{{node_results." + (ids.empty() ? id : ids.back()) +
                                    "}}', 'k': " + std::to_string(pick(9)) + "}"));
      }
      ids.push_back(id);
    }
    for (int i = 1; i < count; ++i) {
      edges.push_back(ids[static_cast<std::size_t>(pick(i))] + ">" +
                      ids[static_cast<std::size_t>(i)]);
      if (pick(3) == 0) {
        edges.push_back(ids[static_cast<std::size_t>(pick(i))] + ">" +
                        ids[static_cast<std::size_t>(i)]);
      }
    }
    return MakeGraph(std::move(nodes), edges, std::move(branches));
  };
  return *MakePlan(graph(graph, 0, ""));
}

TEST(Resume, from_any_event_ends_as_the_undisturbed_run_does) {
  std::mt19937 random(20261201);
  int crashes = 0;
  for (int round = 0; round < 60; ++round) {
    const Plan plan = RandomPlan(random);
    std::mutex mutex;
    std::map<std::string, int> calls;
    FakeRuntime runtime([&](const isolate::Job& job) -> Result<isolate::Outcome> {
      const std::string node = job.self.Find("node")->as_string();
      const std::lock_guard lock(mutex);
      ++calls[node];
      return Value(json::Object{{"saw", job.state.Find("node_results")->as_object().size()}});
    });
    Services services;
    services.micropython = &runtime;
    const Outcome whole = Start(plan, services);
    ASSERT_EQ(whole.result.status, RunStatus::kSucceeded);
    const auto once = calls;
    for (std::size_t cut = 1; cut < whole.lines.size(); ++cut) {
      Outcome crashed{whole.result,
                      {whole.lines.begin(), whole.lines.begin() + static_cast<long>(cut)}};
      // Those whose end is in the record do not run again.
      std::map<std::string, int> kept;
      for (const std::string& line : crashed.lines) {
        const json::Value event = *json::Read(line);
        if (*event.Find("event") == json::Value("node_finished") &&
            *event.Find("type") == json::Value("code")) {
          ++kept[event.Find("node")->as_string()];
        }
      }
      calls.clear();
      const auto rest = GoOn(plan, crashed, "{}", services);
      ASSERT_TRUE(rest.has_value()) << rest.error().message;
      EXPECT_EQ(rest->result.status, RunStatus::kSucceeded);
      EXPECT_EQ(rest->result.steps, whole.result.steps);
      EXPECT_EQ(Text(*rest->result.state.Find("node_results")),
                Text(*whole.result.state.Find("node_results")))
          << "round " << round << " after " << crashed.lines.back();
      EXPECT_EQ(rest->result.state.Find("messages")->as_array().size(),
                whole.result.state.Find("messages")->as_array().size());
      for (const auto& [node, count] : once) EXPECT_EQ(calls[node] + kept[node], count) << node;
      ++crashes;
    }
  }
  EXPECT_GT(crashes, 1000);
}

TEST(Resume, says_that_a_run_waits_only_when_its_question_is_recorded) {
  const Plan plan = *MakePlan(
      MakeGraph({Set("a", "{'x': 1}"), Native("ask", "HumanInputNode", Ask("Go?"))}, {"a>ask"}));
  bool has_waited = false;
  for (int commits = 0; !has_waited; ++commits) {
    ASSERT_LT(commits, 100);
    Record record;
    record.FailAfter(commits);
    Services services;
    services.journal = &record;
    services.new_message_id = NewId;
    const auto result = graph::Run(plan, J("{}"), WithId(), services);
    ASSERT_TRUE(result.has_value());
    has_waited = result->status == RunStatus::kInterrupted;
    const bool is_recorded =
        !record.lines.empty() && record.lines.back().contains("\"run_interrupted\"");
    EXPECT_EQ(has_waited, is_recorded) << commits;
    if (has_waited) continue;
    EXPECT_EQ(result->status, RunStatus::kFailed);
    EXPECT_EQ(result->error->code.name, errors::kGraphEvent.name);
  }
}

}  // namespace
}  // namespace caisson::graph
