// SPDX-License-Identifier: Apache-2.0
#include "runs/runs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "errors/graph.h"
#include "errors/runs.h"
#include "errors/store.h"
#include "json/reader.h"
#include "json/writer.h"
#include "runs/node_stores.h"
#include "runs/owner.h"
#include "store/sqlite/workflow_store.h"
#include "workflow/loader.h"

namespace caisson::runs {
namespace {

using store::sqlite::Durability;

workflow::Graph Line(const std::vector<workflow::Node>& nodes) {
  workflow::Graph graph;
  graph.nodes = nodes;
  std::string before(workflow::kStart);
  for (const workflow::Node& node : nodes) {
    graph.edges.push_back({before, workflow::NodeId(node)});
    before = workflow::NodeId(node);
  }
  graph.entrypoint = workflow::NodeId(nodes.front());
  return graph;
}

workflow::Node Native(std::string id, std::string type, const std::string& config) {
  return workflow::BuiltinNode{std::move(id), std::move(type), json::Read(config)->as_object()};
}
workflow::Node Set(std::string id, const std::string& variables) {
  return Native(std::move(id), "SetVariableNode", R"({"variables": )" + variables + "}");
}

std::string Text(const json::Value& value) { return *json::Write(value); }

class RunsTest : public ::testing::Test {
 protected:
  RunsTest() {
    std::string pattern = ::testing::TempDir() + "caisson-runs-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    Open();
  }
  ~RunsTest() override {
    runs_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::string path() const { return directory_ + "/runs.db"; }
  void Open() {
    runs_.reset();
    store_ = store::sqlite::OpenWorkflows(path(), Durability::kNormal).value();
    runs_ = std::make_unique<Runs>(*store_);
  }

  static graph::Plan PlanOf(workflow::Graph graph) {
    return *graph::Plan::Create(std::make_shared<const workflow::Graph>(std::move(graph)));
  }

  Result<graph::RunResult> Start(const workflow::Graph& graph, const std::string& id,
                                 const std::string& inputs = "{}") {
    Settings settings;
    CAISSON_ASSIGN(const graph::RunConfig config, ConfigOf(settings, id));
    const json::Value given = *json::Read(inputs);
    CAISSON_ASSIGN(auto record, runs_->Begin(graph, "test", settings, config, given));
    graph::Services services;
    services.journal = record.get();
    services.stop = record->stop();
    return graph::Run(PlanOf(graph), given, config, services);
  }
  Result<graph::RunResult> GoOn(Held held, const std::string& answers = "{}") {
    CAISSON_ASSIGN(const graph::RunConfig config, ConfigOf(held.settings, held.record->run().id));
    const auto loaded = workflow::LoadIr(std::string_view(held.ir));
    graph::Services services;
    services.journal = held.record.get();
    services.stop = held.record->stop();
    return graph::Resume(*graph::Plan::Create(loaded.graph), held.progress,
                         json::Read(answers)->as_object(), config, services);
  }
  std::string StatusOf(const std::string& id) { return runs_->Find(id)->status; }
  std::string AllEvents(const std::string& id) {
    std::string text;
    std::int64_t after = 0;
    while (true) {
      const auto batches = *runs_->EventsAfter(*runs_->Find(id), after, 3);
      if (batches.empty()) return text;
      for (const store::RunEvents& batch : batches) {
        text += batch.lines;
        after = batch.last;
      }
    }
  }

  std::string directory_;
  std::unique_ptr<store::WorkflowStore> store_;
  std::unique_ptr<Runs> runs_;
};

TEST_F(RunsTest, KeepARunAndItsEnd) {
  const auto result = Start(Line({Set("a", R"({"x": "{{inputs.n}}"})")}), "one", R"({"n": 5})");
  ASSERT_TRUE(result && result->ok());
  const Shown shown = *runs_->Find("one");
  EXPECT_EQ(shown.status, "succeeded");
  EXPECT_EQ(shown.row.steps, 1);
  EXPECT_TRUE(shown.row.owner.empty());
  EXPECT_TRUE(shown.row.ended_at.has_value());
  EXPECT_EQ(Text(runs_->ProgressAt(shown, std::nullopt)->root().state.ToJson()),
            Text(result->state));
}

TEST_F(RunsTest, AreFoundByTheBeginningOfTheirId) {
  ASSERT_TRUE(Start(Line({Set("a", "{}")}), "abc1").has_value());
  ASSERT_TRUE(Start(Line({Set("a", "{}")}), "abd2").has_value());
  EXPECT_EQ(runs_->Find("abc")->row.id, "abc1");
  EXPECT_EQ(runs_->Find("ab").error().code, errors::kRunsAmbiguous);
  EXPECT_EQ(runs_->Find("x").error().code, errors::kRunsNotFound);
  EXPECT_EQ(runs_->Find("%").error().code, errors::kRunsNotFound);
  EXPECT_EQ(runs_->Find("").error().code, errors::kRunsAmbiguous);
}

TEST_F(RunsTest, RefuseAnIdThatExists) {
  ASSERT_TRUE(Start(Line({Set("a", "{}")}), "same").has_value());
  EXPECT_EQ(Start(Line({Set("a", "{}")}), "same").error().code, errors::kStoreConflict);
}

TEST_F(RunsTest, GoOnWithAnAnswerAfterTheStoreWasClosed) {
  const auto graph = Line({Set("a", R"({"x": 1})"), Native("ask", "HumanInputNode", "{}"),
                           Set("b", R"({"said": "{{ask.response}}", "x": "{{a.x}}"})")});
  ASSERT_EQ(Start(graph, "one")->status, graph::RunStatus::kInterrupted);
  EXPECT_EQ(StatusOf("one"), "interrupted");
  EXPECT_EQ(runs_->Find("one")->row.questions,
            R"([{"node_path":"ask","value":{"message":"Please respond.","kind":"human"}}])");
  Open();
  auto held = runs_->Claim("one");
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(runs_->Claim("one").error().code, errors::kRunsActive);
  EXPECT_EQ(runs_->Remove("one").error().code, errors::kRunsActive);
  const auto result = GoOn(*std::move(held), R"({"ask": "yes"})");
  ASSERT_TRUE(result && result->ok());
  EXPECT_EQ(Text(*result->state.Find("node_results")->Find("b")), R"({"said":"yes","x":1})");
  EXPECT_EQ(StatusOf("one"), "succeeded");
  EXPECT_EQ(runs_->Claim("one").error().code, errors::kRunsEnded);
}

TEST_F(RunsTest, ForkFromAnyStepToTheSameEnd) {
  std::vector<workflow::Node> nodes{Set("n0", R"({"v": 0})")};
  for (int i = 1; i < 8; ++i) {
    nodes.push_back(Set("n" + std::to_string(i),
                        R"({"v": "{{n)" + std::to_string(i - 1) + R"(.v}}", "messages": "m"})"));
  }
  const auto whole = Start(Line(nodes), "one");
  ASSERT_TRUE(whole && whole->ok());
  for (int step = 0; step <= 8; ++step) {
    auto held = runs_->Fork("one", step);
    ASSERT_TRUE(held.has_value()) << held.error().message;
    EXPECT_EQ(held->record->run().parent, "one");
    const std::string id = held->record->run().id;
    const auto result = GoOn(*std::move(held));
    ASSERT_TRUE(result && result->ok());
    EXPECT_EQ(Text(*result->state.Find("node_results")), Text(*whole->state.Find("node_results")));
    EXPECT_EQ(result->steps, 8);
    EXPECT_EQ(result->node_visits, static_cast<std::uint64_t>(8 - step));
    EXPECT_EQ(StatusOf(id), "succeeded");
  }
  EXPECT_EQ(runs_->Fork("one", 9).error().code, errors::kRunsNoStep);
  EXPECT_EQ(runs_->Fork("one", 9).error().message, "the run one has completed 8 steps, not 9");
}

TEST_F(RunsTest, ShowWhatTheStateWasAfterAnyStep) {
  ASSERT_TRUE(Start(Line({Set("a", R"({"x": 1})"), Set("b", "{}"), Set("c", "{}")}), "one"));
  const Shown shown = *runs_->Find("one");
  const auto keys = [&](std::int64_t step) {
    const nodes::State state = runs_->ProgressAt(shown, step)->Latest();
    return state.Find("node_results")->as_object().size();
  };
  EXPECT_EQ(keys(0), 0u);
  EXPECT_EQ(keys(1), 1u);
  EXPECT_EQ(keys(3), 3u);
}

TEST_F(RunsTest, TakeSnapshotsOfLongRunsAndFoldFromThem) {
  std::vector<workflow::Node> nodes;
  for (int i = 0; i < 300; ++i) {
    nodes.push_back(Set("n" + std::to_string(i), R"({"v": ")" + std::string(5000, 'x') + "\"}"));
  }
  const auto whole = Start(Line(nodes), "one");
  ASSERT_TRUE(whole && whole->ok());
  const Shown shown = *runs_->Find("one");
  const auto last = store_->Read(
      [&](store::WorkflowRows& rows) { return rows.SnapshotAt(shown.row.number, 1'000'000); });
  EXPECT_GT((*last)->sequence, 300);
  for (const std::int64_t step : {1, 150, 299, 300}) {
    const auto progress = runs_->ProgressAt(shown, step);
    ASSERT_TRUE(progress.has_value());
    EXPECT_EQ(progress->Latest().Find("node_results")->as_object().size(),
              static_cast<std::size_t>(step));
  }
}

TEST_F(RunsTest, CancelWhatNobodyRuns) {
  ASSERT_TRUE(Start(Line({Native("ask", "HumanInputNode", "{}")}), "one").has_value());
  EXPECT_EQ(*runs_->Cancel("one"), true);
  EXPECT_EQ(StatusOf("one"), "cancelled");
  EXPECT_EQ(runs_->Cancel("one").error().code, errors::kRunsEnded);
  EXPECT_NE(AllEvents("one").find(R"("status":"cancelled")"), std::string::npos);
  // It can be taken up again, and is asked anew.
  const auto result = GoOn(*runs_->Claim("one"));
  EXPECT_EQ(result->status, graph::RunStatus::kInterrupted);
}

TEST_F(RunsTest, CancelOneThatWasTakenButHasNotGoneOn) {
  ASSERT_TRUE(Start(Line({Native("ask", "HumanInputNode", "{}")}), "one").has_value());
  {
    const auto held = runs_->Claim("one");
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(*runs_->Cancel("one"), false);
  }
  EXPECT_EQ(StatusOf("one"), "cancelled");
}

TEST_F(RunsTest, AskTheProcessThatRunsToStop) {
  std::thread canceller([&] {
    while (!runs_->Find("slow") || runs_->Find("slow")->status != "running") {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(*runs_->Cancel("slow"), false);
  });
  const auto result =
      Start(Line({Native("slow", "DelayNode", R"({"duration_seconds": 60})")}), "slow");
  canceller.join();
  EXPECT_EQ(result->status, graph::RunStatus::kCancelled);
  EXPECT_EQ(StatusOf("slow"), "cancelled");
}

TEST_F(RunsTest, ShowARunWhoseProcessWasKilledAndGoOnWithIt) {
  runs_.reset();
  store_.reset();
  const pid_t child = fork();
  if (child == 0) {
    Open();
    (void)Start(
        Line({Set("a", R"({"x": 1})"), Native("slow", "DelayNode", R"({"duration_seconds": 0.3})"),
              Set("b", R"({"x": "{{a.x}}"})")}),
        "one");
    _exit(0);
  }
  Open();
  while ((runs_->Find("one") ? AllEvents("one") : std::string()).find("\"sequence\":5") ==
         std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(StatusOf("one"), "running");
  EXPECT_EQ(runs_->Claim("one").error().code, errors::kRunsActive);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(StatusOf("one"), "crashed");
  const auto result = GoOn(*runs_->Claim("one"));
  ASSERT_TRUE(result && result->ok());
  EXPECT_EQ(Text(*result->state.Find("node_results")->Find("b")), R"({"x":1})");
  EXPECT_EQ(AllEvents("one").find("\"node\":\"a\"", AllEvents("one").find("run_resumed")),
            std::string::npos);
}

TEST_F(RunsTest, RefuseToWriteOnceAnotherProcessHasTakenTheRun) {
  const auto graph =
      Line({Native("slow", "DelayNode", R"({"duration_seconds": 0.05})"), Set("b", "{}")});
  std::thread thief([&] {
    while (!runs_->Find("one")) std::this_thread::yield();
    EXPECT_TRUE(store_->Write([&](store::WorkflowRows& rows) -> Result<void> {
      auto row = rows.FindRun("one");
      (*row)->owner = "somebody else";
      return rows.UpdateRun(**row);
    }));
  });
  const auto result = Start(graph, "one");
  thief.join();
  ASSERT_TRUE(result && result->error);
  EXPECT_TRUE(result->error->code == errors::kRunsTaken ||
              result->error->code == errors::kGraphCancelled);
  EXPECT_EQ(runs_->Find("one")->row.owner, "somebody else");
  EXPECT_EQ(AllEvents("one").find("\"b\""), std::string::npos);
}

TEST_F(RunsTest, RefuseARecordThatIsDamaged) {
  ASSERT_TRUE(Start(Line({Native("ask", "HumanInputNode", "{}")}), "one").has_value());
  const std::int64_t number = runs_->Find("one")->row.number;
  ASSERT_TRUE(store_->Write([&](store::WorkflowRows& rows) {
    return rows.AppendEvents(number, {1000, 1000, "{\"event\": \"run_started\"}\n"});
  }));
  EXPECT_EQ(runs_->Claim("one").error().code, errors::kRunsDamaged);
  EXPECT_EQ(StatusOf("one"), "interrupted");
}

TEST_F(RunsTest, RefuseASnapshotOfALaterVersion) {
  ASSERT_TRUE(Start(Line({Native("ask", "HumanInputNode", "{}")}), "one").has_value());
  const std::int64_t number = runs_->Find("one")->row.number;
  ASSERT_TRUE(store_->Write([&](store::WorkflowRows& rows) {
    return rows.PutSnapshot(number, {4, R"({"format": 2, "sequence": 4, "shape": "new"})"});
  }));
  EXPECT_EQ(runs_->Claim("one").error().code, errors::kGraphNewer);
}

TEST_F(RunsTest, AreForgottenWithTheirWorkflow) {
  ASSERT_TRUE(Start(Line({Set("a", "{}")}), "one").has_value());
  const std::string hash = runs_->Find("one")->row.workflow;
  ASSERT_TRUE(runs_->Remove("one").has_value());
  EXPECT_EQ(runs_->Find("one").error().code, errors::kRunsNotFound);
  EXPECT_FALSE((*store_->Read([&](store::WorkflowRows& rows) {
                 return rows.FindWorkflow(hash);
               })).has_value());
  // A number is never used again.
  ASSERT_TRUE(Start(Line({Set("a", "{}")}), "two").has_value());
  EXPECT_EQ(runs_->Find("two")->row.number, 2);
}

TEST_F(RunsTest, AreBackedUpWhileTheyRun) {
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      (void)Start(Line({Set("a", "{}"), Set("b", "{}")}), "run-" + std::to_string(i));
    }
  });
  while (!runs_->Find("run-3")) std::this_thread::yield();
  ASSERT_TRUE(store::sqlite::BackUp(path(), directory_ + "/copy.db").has_value());
  writer.request_stop();
  writer.join();
  EXPECT_EQ(store::sqlite::BackUp(path(), directory_ + "/copy.db").error().code,
            errors::kStoreConflict);
  auto copy = store::sqlite::OpenWorkflows(directory_ + "/copy.db", Durability::kFull).value();
  Runs copied(*copy);
  EXPECT_EQ(copied.Find("run-3")->row.id, "run-3");
  const auto all = copied.List({}).value();
  for (const Shown& run : all) {
    EXPECT_TRUE(copied.ProgressAt(run, std::nullopt).has_value());
  }
}

TEST_F(RunsTest, KeepWhatNodesStoreForLater) {
  StoredBlobs blobs(*store_);
  StoredItems items(*store_);
  graph::Services services;
  services.blobs = &blobs;
  services.items = &items;
  const graph::Plan plan = PlanOf(
      Line({Native("file", "FileUploadNode", R"({"content": "a,b", "filename": "t.csv"})"),
            Native("note", "GraphStoreAppendMessageNode", R"({"key": "k", "content": "one"})"),
            Native("again", "GraphStoreAppendMessageNode", R"({"key": "k", "content": "two"})")}));
  const auto result = graph::Run(plan, json::Object{}, {}, services);
  ASSERT_TRUE(result && result->ok()) << (result ? result->error->message : result.error().message);
  const json::Value* file = result->state.Find("node_results")->Find("file");
  const std::string id = file->Find("attachment_id")->as_string();
  EXPECT_EQ(file->Find("download_url")->as_string(), "caisson:file/" + id);
  const auto kept = store_->Read([&](store::WorkflowRows& rows) { return rows.FindFile(id); });
  EXPECT_EQ((*kept)->content, "a,b");
  EXPECT_EQ((*kept)->name, "t.csv");
  Open();
  StoredItems later(*store_);
  const auto history = later.Get({{"agent_chat_history"}, "k"});
  EXPECT_EQ(Text(**history), R"({"version":2,"messages":[{"role":"assistant","content":"one"},)"
                             R"({"role":"assistant","content":"two"}]})");
  EXPECT_FALSE((*later.Get({{"agent_chat_history"}, "other"})).has_value());
}

TEST_F(RunsTest, RefuseAFileThatIsNoStore) {
  const std::string other = directory_ + "/text.db";
  ASSERT_EQ(system(("head -c 10000 /dev/urandom > " + other).c_str()), 0);
  EXPECT_EQ(store::sqlite::OpenWorkflows(other, Durability::kNormal).error().code,
            errors::kStoreCorrupt);
}

TEST(Owner, of_this_process_lives_and_of_one_that_ended_does_not) {
  EXPECT_EQ(StateOf(NewOwner()), OwnerState::kAlive);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string owner = NewOwner();
    _exit(write(pipe_ends[1], owner.data(), owner.size()) > 0 ? 0 : 1);
  }
  char text[256];
  const ssize_t length = read(pipe_ends[0], text, sizeof text);
  const std::string owner(text, static_cast<std::size_t>(length));
  waitpid(child, nullptr, 0);
  EXPECT_EQ(StateOf(owner), OwnerState::kDead);
  EXPECT_EQ(StateOf("another-boot pid:[1] 17 99 x"), OwnerState::kUnknown);
  EXPECT_EQ(StateOf(""), OwnerState::kUnknown);
}

}  // namespace
}  // namespace caisson::runs
