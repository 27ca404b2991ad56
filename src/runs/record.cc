// SPDX-License-Identifier: Apache-2.0
#include "runs/record.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "errors/runs.h"
#include "json/writer.h"

namespace caisson::runs {
namespace {

constexpr std::chrono::seconds kRenewal{5};
// How long a wish to cancel may go unheard of by a node that takes long.
constexpr std::chrono::milliseconds kLook{500};

// A snapshot is worth its bytes when the events since the last one have become many more: what is
// read to go on stays in proportion to the state, and so does what is written beside the events.
constexpr std::size_t kLeastEvents = 256u << 10;
constexpr std::size_t kEventsPerSnapshot = 4;
// A state that is larger when it is written out has no snapshots after its first.
constexpr std::size_t kMaxSnapshot = 256u << 20;
constexpr std::size_t kMaxText = 1u << 30;

Result<std::string> Lines(std::span<const graph::KeptEvent> events) {
  std::string lines;
  for (const graph::KeptEvent& event : events) {
    const graph::Event view = event.View();
    if (!view.AppendText(lines, kMaxText)) {
      // The strict way says why.
      CAISSON_ASSIGN(const std::string line, json::Write(view.ToJson()));
      lines += line;
    }
    lines += '\n';
  }
  return lines;
}

std::string TextOf(const json::Value* value) {
  if (value == nullptr) return {};
  return json::Write(*value).value_or(std::string());
}

}  // namespace

Record::Record(store::WorkflowStore& store, store::WorkflowRun run,
               std::optional<store::WorkflowRun> before, graph::Progress progress,
               std::size_t snapshot_bytes)
    : store_(store),
      owner_(run.owner),
      before_(std::move(before)),
      run_(std::move(run)),
      progress_(std::move(progress)),
      snapshot_bytes_(snapshot_bytes),
      watcher_([this](const std::stop_token& end) { Watch(end); }) {}

Record::~Record() {
  watcher_.request_stop();
  watcher_.join();
  if (has_ended_) return;
  // Without this the lease says that nobody is at it.
  (void)store_.Write([&](store::WorkflowRows& rows) { return GiveUp(rows); });
}

Result<void> Record::GiveUp(store::WorkflowRows& rows) {
  CAISSON_ASSIGN(auto row, rows.FindRun(run_.id));
  if (!row || row->owner != owner_) return {};
  if (!has_begun_ && !before_) return rows.DeleteRun(run_.number);
  const bool was_cancelled = row->cancel;
  if (!has_begun_) *row = *before_;
  // Somebody was told that it would be stopped.
  if (!has_begun_ && was_cancelled) {
    row->status = "cancelled";
    row->cancel = false;
    row->questions.clear();
    row->updated_at = Now();
    row->ended_at = row->updated_at;
  }
  row->owner.clear();
  return rows.UpdateRun(*row);
}

Result<void> Record::CheckClaim(store::WorkflowRows& rows) {
  CAISSON_ASSIGN(const auto claim, rows.FindClaim(run_.number));
  if (!claim || claim->owner != owner_) {
    stop_.request_stop();
    return Fail(errors::kRunsTaken, "another process has taken the run " + run_.id + " over");
  }
  if (claim->cancel) stop_.request_stop();
  return {};
}

Result<void> Record::Replace(const Settings& settings) {
  const std::lock_guard lock(mutex_);
  CAISSON_ASSIGN(run_.settings, json::Write(ToJson(settings)));
  return store_.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_TRY(CheckClaim(rows));
    CAISSON_ASSIGN(auto row, rows.FindRun(run_.id));
    if (!row) return {};
    row->settings = run_.settings;
    return rows.UpdateRun(*row);
  });
}

Result<void> Record::Append(std::span<const graph::KeptEvent> events) {
  if (events.empty()) return {};
  store::RunEvents batch{static_cast<std::int64_t>(events.front().sequence),
                         static_cast<std::int64_t>(events.back().sequence),
                         {}};
  CAISSON_ASSIGN(batch.lines, Lines(events));
  const std::lock_guard lock(mutex_);
  // In place: a run whose journal has failed does not go on with this one.
  for (const graph::KeptEvent& event : events) {
    CAISSON_TRY(progress_.Apply(event));
    TakeEnd(event);
  }
  CAISSON_TRY(
      store_.Write([&](store::WorkflowRows& rows) -> Result<void> { return Write(rows, batch); }));
  has_begun_ = true;
  return {};
}

Result<void> Record::Write(store::WorkflowRows& rows, const store::RunEvents& events) {
  CAISSON_TRY(CheckClaim(rows));
  CAISSON_TRY(rows.AppendEvents(run_.number, events));
  unsnapshot_bytes_ += events.lines.size();
  if (unsnapshot_bytes_ > std::max(kLeastEvents, kEventsPerSnapshot * snapshot_bytes_)) {
    CAISSON_TRY(PutSnapshot(rows, events.last));
  }
  return has_ended_ ? rows.UpdateRun(run_) : Result<void>();
}

Result<void> Record::PutSnapshot(store::WorkflowRows& rows, std::int64_t sequence) {
  unsnapshot_bytes_ = 0;
  if (graph::Weigh(progress_.root().state) > kMaxSnapshot) return {};
  CAISSON_ASSIGN(std::string text, json::Write(progress_.ToJson()));
  snapshot_bytes_ = text.size();
  return rows.PutSnapshot(run_.number, {sequence, std::move(text)});
}

void Record::TakeEnd(const graph::KeptEvent& event) {
  if (event.kind != graph::EventKind::kRunFinished &&
      event.kind != graph::EventKind::kRunInterrupted) {
    return;
  }
  const json::Value* status = event.data ? event.data->Find("status") : nullptr;
  if (status != nullptr && status->is_string()) run_.status = status->as_string();
  run_.steps = progress_.root().steps;
  run_.error = TextOf(event.data ? event.data->Find("error") : nullptr);
  run_.questions = TextOf(event.data ? event.data->Find("questions") : nullptr);
  run_.owner.clear();
  run_.cancel = false;
  run_.updated_at = Now();
  if (event.kind == graph::EventKind::kRunFinished) run_.ended_at = run_.updated_at;
  has_ended_ = true;
}

void Record::Watch(const std::stop_token& end) {
  auto renewed = std::chrono::steady_clock::now();
  while (!end.stop_requested()) {
    {
      std::unique_lock lock(watch_mutex_);
      wake_.wait_for(lock, end, kLook, [] { return false; });
    }
    if (end.stop_requested()) return;
    if (std::chrono::steady_clock::now() - renewed >= kRenewal) {
      Renew();
      renewed = std::chrono::steady_clock::now();
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    (void)store_.Read([&](store::WorkflowRows& rows) -> Result<void> { return CheckClaim(rows); });
  }
}

void Record::Renew() {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  (void)store_.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_TRY(CheckClaim(rows));
    CAISSON_ASSIGN(auto row, rows.FindRun(run_.id));
    if (!row) return {};
    row->lease_until = Now() + kLease;
    row->updated_at = Now();
    row->steps = progress_.root().steps;
    return rows.UpdateRun(*row);
  });
}

}  // namespace caisson::runs
