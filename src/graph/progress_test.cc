// SPDX-License-Identifier: Apache-2.0
#include "graph/progress.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "errors/graph.h"
#include "graph/test_support.h"
#include "json/reader.h"
#include "json/schema.h"
#include "json/writer.h"

namespace caisson::graph {
namespace {

Event Full(EventKind kind, const json::Value& data, const std::vector<std::string>& nodes) {
  Event event;
  event.kind = kind;
  event.sequence = 12;
  event.elapsed = std::chrono::nanoseconds(1'234'567);
  event.run_id = "run \"7\"";
  event.step = 3;
  event.graph_path = "outer/in\nner";
  event.node_id = "n";
  event.node_type = "code";
  event.attempt = 2;
  event.continues = kind == EventKind::kNodeStarted;
  event.duration = std::chrono::microseconds(41);
  event.tokens = kind == EventKind::kNodeFinished ? 17 : 0;
  if (kind == EventKind::kNodeError) event.retry = std::chrono::milliseconds(250);
  if (kind == EventKind::kStepStarted) event.nodes = &nodes;
  event.data = &data;
  return event;
}

constexpr EventKind kAll[] = {
    EventKind::kRunStarted,      EventKind::kRunResumed,     EventKind::kStepStarted,
    EventKind::kNodeStarted,     EventKind::kNodeFinished,   EventKind::kNodeError,
    EventKind::kNodeInterrupted, EventKind::kRunInterrupted, EventKind::kRunFinished};

TEST(Event, has_one_text_however_it_is_written) {
  const json::Value data = J("{'node_results': {'n': {'x': [1, 2.5, 'ä', null]}}}");
  const std::vector<std::string> nodes{"a", "b\\"};
  for (const EventKind kind : kAll) {
    const Event event = Full(kind, data, nodes);
    std::string text = "before ";
    ASSERT_TRUE(event.AppendText(text, 1000));
    EXPECT_EQ(text, "before " + *json::Write(event.ToJson()));
  }
}

// Every kind of event that a run has, in one run.
std::vector<json::Value> EventsOfARun() {
  std::vector<json::Value> lines;
  RunConfig config =
      *ParseRunConfig(J("{'nodes': {'c': {'retry': {'count': 1,"
                        " 'backoff_seconds': 0.001, 'codes': ['*']}}}}"));
  config.run_id = "r";
  FakeRuntime runtime([](const isolate::Job&) -> Result<isolate::Outcome> {
    return FaultOf(isolate::Fault::kRaised, "no");
  });
  MemoryJournal journal;
  Services services;
  services.micropython = &runtime;
  services.journal = &journal;
  const Plan plan = *MakePlan(MakeGraph(
      {Set("a", "{'messages': 'hi'}"), Sub("s", MakeGraph({Native("ask", "HumanInputNode", "{}")})),
       Code("c", "return {}")},
      {"a>s", "s>c"}));
  (void)graph::Run(plan, J("{}"), config, services);
  Progress progress(InitialState(J("{}"), config, "r"));
  for (const KeptEvent& event : journal.events()) EXPECT_TRUE(progress.Apply(event));
  (void)Resume(plan, progress, J("{'s/ask': 1}").as_object(), config, services);
  for (const KeptEvent& event : journal.events()) lines.push_back(event.View().ToJson());
  return lines;
}

TEST(Event, has_the_form_that_the_schema_gives) {
  const auto text = std::ifstream(CAISSON_SOURCE_DIR "/api/events.schema.json");
  std::stringstream document;
  document << text.rdbuf();
  const auto schema = json::Schema::Compile(*json::Read(document.str()));
  ASSERT_TRUE(schema.has_value()) << schema.error().message;
  std::set<std::string> seen;
  for (const json::Value& line : EventsOfARun()) {
    const auto verdict = schema->Check(line);
    ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
    EXPECT_EQ(verdict->Text(), "") << Text(line);
    seen.insert(line.Find("event")->as_string());
  }
  EXPECT_EQ(seen.size(), std::size(kAll));
  // It says no, too.
  const auto wrong =
      schema->Check(J("{'event': 'node_finished', 'sequence': 1, 'elapsed_ms': 0,"
                      " 'run_id': 'r'}"));
  EXPECT_NE(wrong->Text(), "");
}

TEST(Event, reads_back_as_it_was) {
  const json::Value data = J("{'status': 'failed'}");
  const std::vector<std::string> nodes{"a", "b"};
  for (const EventKind kind : kAll) {
    const Event event = Full(kind, data, nodes);
    const auto kept = KeptEvent::FromJson(event.ToJson());
    ASSERT_TRUE(kept.has_value()) << EventKindName(kind) << kept.error().message;
    EXPECT_EQ(Text(kept->View().ToJson()), Text(event.ToJson()));
  }
}

TEST(Event, without_a_text_leaves_what_was_there) {
  const json::Value large = json::Object{{"x", std::string(2000, 'x')}};
  std::string text = "before";
  EXPECT_FALSE(Full(EventKind::kNodeFinished, large, {}).AppendText(text, 1000));
  EXPECT_EQ(text, "before");
}

TEST(EventReader, names_what_is_wrong) {
  const auto refusal = [](std::string event) {
    const auto read = KeptEvent::FromJson(J(std::move(event)));
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(refusal("[]"), "an event of a run must be an object");
  EXPECT_EQ(refusal("{'event': 'nap'}"),
            "an event of a run: its member 'event' names no event that is known: 'nap'");
  EXPECT_EQ(refusal("{'event': 'run_started', 'sequence': -1}"),
            "an event of a run: its member 'sequence' must be an integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(refusal("{'event': 'node_finished', 'sequence': 1, 'elapsed_ms': 1, 'run_id': 'r',"
                    " 'step': 1, 'graph': '', 'node': 'a', 'type': 't', 'update': []}"),
            "an event of a run: its member 'update' must be an object");
}

KeptEvent At(EventKind kind, std::uint64_t sequence) {
  KeptEvent event;
  event.kind = kind;
  event.sequence = sequence;
  event.run_id = "r";
  return event;
}

TEST(Progress, refuses_events_that_do_not_follow) {
  Progress progress{nodes::State()};
  EXPECT_FALSE(progress.Apply(At(EventKind::kRunStarted, 2)));
  progress = Progress(nodes::State());
  ASSERT_TRUE(progress.Apply(At(EventKind::kRunStarted, 1)));
  KeptEvent step = At(EventKind::kStepStarted, 2);
  step.step = 2;
  step.nodes = {"a"};
  const auto refused = progress.Apply(step);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "event 2 of run r (step_started) does not follow from those before: step 1 was to "
            "come");
}

TEST(Path, of_a_node_says_which_slash_is_whose) {
  EXPECT_EQ(JoinPath("", "a"), "a");
  EXPECT_EQ(JoinPath("a/b", "c/d~e"), "a/b/c~1d~0e");
}

}  // namespace
}  // namespace caisson::graph
