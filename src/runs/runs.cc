// SPDX-License-Identifier: Apache-2.0
#include "runs/runs.h"

#include <utility>

#include "errors/graph.h"
#include "errors/runs.h"
#include "graph/messages.h"
#include "json/reader.h"
#include "json/writer.h"
#include "runs/owner.h"

namespace caisson::runs {
namespace {

constexpr std::int64_t kBatches = 256;  // read at once

bool IsActive(const store::WorkflowRun& row) {
  if (row.owner.empty()) return false;
  switch (StateOf(row.owner)) {
    case OwnerState::kAlive:
      return true;
    case OwnerState::kDead:
      return false;
    case OwnerState::kUnknown:
      return Now() < row.lease_until;
  }
  return true;
}

std::unexpected<Status> Active(const store::WorkflowRun& row) {
  return Fail(Status{.code = errors::kRunsActive,
                     .message = "the run " + row.id + " is being run by another process",
                     .details = "wait for it, or ask it to stop: caisson runs cancel " + row.id});
}

std::unexpected<Status> Damaged(const store::WorkflowRun& row, const std::string& what) {
  return Fail(errors::kRunsDamaged, "the record of the run " + row.id + " is damaged: " + what);
}

Result<store::WorkflowRun> FindRow(store::WorkflowRows& rows, const std::string& id) {
  CAISSON_ASSIGN(const auto exact, rows.FindRun(id));
  if (exact) return *exact;
  CAISSON_ASSIGN(auto like, rows.RunsLike(id, 2));
  if (like.size() == 1 && !id.empty()) return std::move(like.front());
  if (like.size() > 1) {
    return Fail(errors::kRunsAmbiguous, "several runs begin with '" + id + "', " + like[0].id +
                                            " and " + like[1].id + " among them");
  }
  return Fail(errors::kRunsNotFound,
              "there is no run '" + id + "'; caisson runs list shows what there is");
}

Result<graph::KeptEvent> ReadEvent(std::string_view line) {
  CAISSON_ASSIGN(const json::Value value, json::Read(line));
  return graph::KeptEvent::FromJson(value);
}

// Folds a run's events, batch by batch.
class Folder {
 public:
  Folder(store::WorkflowRows& rows, const store::WorkflowRun& row, std::optional<std::int64_t> step)
      : rows_(rows), row_(row), step_(step) {}

  // The events up to the end, or to the end of a step.
  Result<graph::Progress> Fold() {
    CAISSON_ASSIGN(graph::Progress progress, Start());
    while (true) {
      const auto after = static_cast<std::int64_t>(progress.sequence());
      CAISSON_ASSIGN(const auto batches, rows_.EventsAfter(row_.number, after, kBatches));
      if (batches.empty()) break;
      for (const store::RunEvents& batch : batches) {
        CAISSON_ASSIGN(const bool more, Take(batch, progress));
        if (!more) return progress;
      }
    }
    if (!step_ || StepsOf(progress) == *step_) return progress;
    return Fail(errors::kRunsNoStep, "the run " + row_.id + " has completed " +
                                         std::to_string(StepsOf(progress)) + " steps, not " +
                                         std::to_string(*step_));
  }
  std::size_t snapshot_bytes() const { return snapshot_bytes_; }

 private:
  // Those whose results are all there count, though the next one has not begun.
  static std::int64_t StepsOf(const graph::Progress& progress) {
    return progress.root().steps + (progress.root().step_is_finished() ? 1 : 0);
  }

  // From the last snapshot that does not lie behind the step.
  Result<graph::Progress> Start() {
    std::int64_t before = (std::int64_t{1} << 32) - 1;
    while (true) {
      CAISSON_ASSIGN(const auto snapshot, rows_.SnapshotAt(row_.number, before));
      if (!snapshot) return Damaged(row_, "its beginning is missing");
      auto value = json::Read(snapshot->progress);
      if (!value) return Damaged(row_, value.error().message);
      CAISSON_ASSIGN(graph::Progress progress, graph::Progress::FromJson(*value));
      // The snapshot's number is the authority: that of a fork begins anew.
      if (static_cast<std::int64_t>(progress.sequence()) != snapshot->sequence) {
        return Damaged(row_, "a snapshot is not what it says");
      }
      snapshot_bytes_ = snapshot->progress.size();
      if (!step_ || progress.root().steps < *step_ || snapshot->sequence == 0) return progress;
      before = snapshot->sequence - 1;
    }
  }

  // False when what is asked for has been reached.
  Result<bool> Take(const store::RunEvents& batch, graph::Progress& progress) {
    std::string_view rest = batch.lines;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) return Damaged(row_, "an event is cut off");
      auto event = ReadEvent(rest.substr(0, end));
      if (!event) return Damaged(row_, event.error().message);
      rest.remove_prefix(end + 1);
      if (event->sequence <= progress.sequence()) continue;
      const bool is_root_step =
          event->kind == graph::EventKind::kStepStarted && event->graph_path.empty();
      if (step_ && is_root_step && event->step == *step_ + 1) return false;
      const bool is_end = event->kind == graph::EventKind::kRunFinished;
      if (step_ && is_end && StepsOf(progress) == *step_) return false;
      if (auto applied = progress.Apply(*event); !applied) {
        return Damaged(row_, applied.error().message);
      }
    }
    return true;
  }

  store::WorkflowRows& rows_;
  const store::WorkflowRun& row_;
  const std::optional<std::int64_t> step_;
  std::size_t snapshot_bytes_ = 0;
};

Result<std::string> IrOf(store::WorkflowRows& rows, const store::WorkflowRun& row) {
  CAISSON_ASSIGN(auto workflow, rows.FindWorkflow(row.workflow));
  if (!workflow) return Damaged(row, "its workflow is missing");
  return std::move(workflow->ir);
}

Result<Settings> SettingsOf(const store::WorkflowRun& row) {
  auto value = json::Read(row.settings);
  if (!value) return Damaged(row, value.error().message);
  return SettingsFromJson(*value);
}

void Take(store::WorkflowRun& row) {
  row.status = "running";
  row.owner = NewOwner();
  row.lease_until = Now() + kLease;
  row.cancel = false;
  row.error.clear();
  row.questions.clear();
  row.updated_at = Now();
  row.ended_at.reset();
}

Result<Held> Hold(store::WorkflowStore& store, store::WorkflowRows& rows, store::WorkflowRun row,
                  std::optional<store::WorkflowRun> before, graph::Progress progress,
                  std::size_t snapshot_bytes) {
  Held held{nullptr, std::move(progress), {}, {}};
  CAISSON_ASSIGN(held.settings, SettingsOf(row));
  CAISSON_ASSIGN(held.ir, IrOf(rows, row));
  held.record = std::make_unique<Record>(store, std::move(row), std::move(before), held.progress,
                                         snapshot_bytes);
  return held;
}

}  // namespace

Shown Runs::Show(store::WorkflowRun row) const {
  std::string status = row.status;
  if (status == "running" && !IsActive(row)) status = "crashed";
  return {std::move(row), std::move(status)};
}

Result<std::unique_ptr<Record>> Runs::Begin(const workflow::Graph& graph, std::string name,
                                            const Settings& settings,
                                            const graph::RunConfig& config,
                                            const json::Value& inputs) {
  store::Workflow workflow{.name = name, .created_at = Now()};
  CAISSON_ASSIGN(workflow.ir, workflow::CanonicalBytes(graph));
  CAISSON_ASSIGN(workflow.hash, workflow::ContentId(graph));
  store::WorkflowRun row;
  row.id = config.run_id;
  row.workflow = workflow.hash;
  row.name = std::move(name);
  row.created_at = Now();
  CAISSON_ASSIGN(row.settings, json::Write(ToJson(settings)));
  Take(row);
  graph::Progress progress(graph::InitialState(inputs, config, config.run_id));
  CAISSON_ASSIGN(std::string snapshot, json::Write(progress.ToJson()));
  const std::size_t snapshot_bytes = snapshot.size();
  CAISSON_TRY(store_.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_TRY(rows.PutWorkflow(workflow));
    CAISSON_ASSIGN(row.number, rows.InsertRun(row));
    return rows.PutSnapshot(row.number, {0, std::move(snapshot)});
  }));
  return std::make_unique<Record>(store_, std::move(row), std::nullopt, std::move(progress),
                                  snapshot_bytes);
}

Result<Shown> Runs::Find(const std::string& id) {
  CAISSON_ASSIGN(auto row,
                 store_.Read([&](store::WorkflowRows& rows) { return FindRow(rows, id); }));
  return Show(std::move(row));
}

Result<std::vector<Shown>> Runs::List(const store::RunFilter& filter) {
  CAISSON_ASSIGN(auto rows,
                 store_.Read([&](store::WorkflowRows& all) { return all.Runs(filter); }));
  std::vector<Shown> shown;
  for (store::WorkflowRun& row : rows) shown.push_back(Show(std::move(row)));
  return shown;
}

Result<Held> Runs::Claim(const std::string& id) {
  return store_.Write([&](store::WorkflowRows& rows) -> Result<Held> {
    CAISSON_ASSIGN(store::WorkflowRun row, FindRow(rows, id));
    if (IsActive(row)) return Active(row);
    if (row.status == "succeeded") {
      return Fail(errors::kRunsEnded, "the run " + row.id +
                                          " has succeeded; caisson runs fork begins one from any "
                                          "of its steps");
    }
    Folder folder(rows, row, std::nullopt);
    CAISSON_ASSIGN(graph::Progress progress, folder.Fold());
    store::WorkflowRun before = row;
    Take(row);
    CAISSON_TRY(rows.UpdateRun(row));
    return Hold(store_, rows, std::move(row), std::move(before), std::move(progress),
                folder.snapshot_bytes());
  });
}

Result<Held> Runs::Fork(const std::string& id, std::int64_t step) {
  return store_.Write([&](store::WorkflowRows& rows) -> Result<Held> {
    CAISSON_ASSIGN(const store::WorkflowRun parent, FindRow(rows, id));
    CAISSON_ASSIGN(graph::Progress progress, Folder(rows, parent, step).Fold());
    progress.Detach();
    store::WorkflowRun row = parent;
    row.id = graph::RandomUuid();
    row.parent = parent.id;
    row.parent_step = step;
    row.steps = step;
    row.created_at = Now();
    Take(row);
    CAISSON_ASSIGN(row.number, rows.InsertRun(row));
    CAISSON_ASSIGN(std::string snapshot, json::Write(progress.ToJson()));
    const std::size_t bytes = snapshot.size();
    CAISSON_TRY(rows.PutSnapshot(row.number, {0, std::move(snapshot)}));
    return Hold(store_, rows, std::move(row), std::nullopt, std::move(progress), bytes);
  });
}

Result<graph::Progress> Runs::ProgressAt(const Shown& run, std::optional<std::int64_t> step) {
  return store_.Read([&](store::WorkflowRows& rows) -> Result<graph::Progress> {
    return Folder(rows, run.row, step).Fold();
  });
}

Result<std::vector<store::RunEvents>> Runs::EventsAfter(const Shown& run, std::int64_t after,
                                                        std::int64_t limit) {
  return store_.Read(
      [&](store::WorkflowRows& rows) { return rows.EventsAfter(run.row.number, after, limit); });
}

Result<bool> Runs::Cancel(const std::string& id) {
  return store_.Write([&](store::WorkflowRows& rows) -> Result<bool> {
    CAISSON_ASSIGN(store::WorkflowRun row, FindRow(rows, id));
    if (row.status == "succeeded" || row.status == "cancelled") {
      return Fail(errors::kRunsEnded, "the run " + row.id + " has ended: " + row.status);
    }
    const bool is_active = IsActive(row);
    row.updated_at = Now();
    if (is_active) {
      row.cancel = true;
      CAISSON_TRY(rows.UpdateRun(row));
      return false;
    }
    CAISSON_ASSIGN(const graph::Progress progress, Folder(rows, row, std::nullopt).Fold());
    graph::KeptEvent end;
    end.kind = graph::EventKind::kRunFinished;
    end.sequence = progress.sequence() + 1;
    end.run_id = row.id;
    json::Object error{{"code", errors::kGraphCancelled.name},
                       {"message", "the run was cancelled while nobody ran it"}};
    CAISSON_ASSIGN(row.error, json::Write(error));
    end.data = json::Object{{"status", "cancelled"},
                            {"steps", progress.root().steps},
                            {"state", progress.Latest().ToJson()},
                            {"error", std::move(error)}};
    CAISSON_ASSIGN(std::string line, json::Write(end.View().ToJson()));
    const auto sequence = static_cast<std::int64_t>(end.sequence);
    CAISSON_TRY(rows.AppendEvents(row.number, {sequence, sequence, std::move(line) + "\n"}));
    row.status = "cancelled";
    row.owner.clear();
    row.questions.clear();
    row.ended_at = row.updated_at;
    CAISSON_TRY(rows.UpdateRun(row));
    return true;
  });
}

Result<void> Runs::Remove(const std::string& id) {
  return store_.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_ASSIGN(const store::WorkflowRun row, FindRow(rows, id));
    if (IsActive(row)) return Active(row);
    return rows.DeleteRun(row.number);
  });
}

}  // namespace caisson::runs
