// SPDX-License-Identifier: Apache-2.0
#include "block/connection.h"

#include <poll.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "block/line_reader.h"
#include "block/run.h"
#include "block/script_facts.h"
#include "errors/block.h"

namespace caisson::block {
namespace {

constexpr std::chrono::milliseconds kLookForReader{200};

// Puts what a run produces on the wire, when its window and the reader let it.
class WireReceiver final : public Receiver {
 public:
  WireReceiver(ActiveRun& run, LineOutput& output)
      : run_(run),
        output_(output),
        deadline_(LineOutput::Clock::now() + run.request.job.limits.wall_clock) {}

  Taken Take(const Delivery& delivery) override {
    const std::stop_token stop = run_.stop.get_token();
    if (!run_.credit.Wait(stop, deadline_)) {
      return stop.stop_requested() ? Taken::kGone : Taken::kTooLate;
    }
    const Line line = EncodeDelivery(run_.request.id, delivery);
    switch (output_.Write(line, {stop, deadline_})) {
      case LineOutput::Written::kYes:
        run_.credit.Spend(line.size() + 1);
        return Taken::kYes;
      case LineOutput::Written::kTooLate:
        return Taken::kTooLate;
      default:
        return Taken::kGone;
    }
  }

 private:
  ActiveRun& run_;
  LineOutput& output_;
  const LineOutput::Clock::time_point deadline_;
};

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

bool ReaderHasGone(int out) {
  pollfd watched{out, 0, 0};
  return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

std::size_t BytesOf(const RunRequest& request) {
  return request.job.source.size() + request.job.inputs.size();
}

}  // namespace

Result<int> Connection::Serve(int in, int out, const std::stop_token& stop, std::string hello) {
  CAISSON_ASSIGN(wake_, os::MakeEventFd());
  CAISSON_ASSIGN(output_, LineOutput::Create(out, [this] {
                   StopReading();
                   CancelAll();
                 }));
  const std::stop_callback on_stop(stop, [this] {
    StopReading();
    CancelAll();
  });
  output_->Post(std::move(hello));
  ReadRequests(in);
  LiftWindows();
  WaitForRuns(out);
  output_->Close(options_.grace);
  return output_->error();
}

void Connection::ReadRequests(int in) {
  LineReader reader(in, wake_.get(), options_.max_line_bytes);
  std::string_view line;
  while (true) {
    const LineReader::Event event = reader.Next(line);
    if (event == LineReader::Event::kEnd || event == LineReader::Event::kStopped) return;
    ++line_;
    if (event == LineReader::Event::kTooLong) {
      Refuse({.status = {.code = errors::kBlockLineTooLong,
                         .message = "the line has more than " +
                                    std::to_string(options_.max_line_bytes) +
                                    " bytes and was skipped"}});
    } else if (!IsBlank(line)) {
      Handle(line);
    }
  }
}

void Connection::Handle(std::string_view line) {
  auto request = ReadRequest(line, options_.limits);
  if (!request) return Refuse(request.error());
  std::visit([this](auto& wish) { Do(std::move(wish)); }, *request);
}

void Connection::Do(RunRequest request) {
  const auto run = std::make_shared<ActiveRun>(std::move(request));
  const std::string& id = run->request.id;
  if (Find(id) != nullptr) {
    return RefuseRun(
        *run, {.code = errors::kBlockDuplicateId, .message = "a run with this id is not over yet"},
        "$.id");
  }
  std::string path;
  auto prepared = Prepare(*run, path);
  if (!prepared) return RefuseRun(*run, std::move(prepared).error(), path);
  const std::size_t bytes = BytesOf(run->request);
  if (auto place = queue_.Reserve(bytes); !place) {
    return RefuseRun(*run, std::move(place).error(), "");
  }
  {
    const std::lock_guard lock(mutex_);
    runs_.emplace(id, run);
  }
  if (!Answer(EncodeAccepted(id, RuntimeName(run->chosen.id)))) {
    queue_.GiveUp(bytes);
    const std::lock_guard lock(mutex_);
    runs_.erase(id);
    return;
  }
  // Under the lock, so that who cancels finds the ticket or comes first.
  const std::lock_guard lock(mutex_);
  run->ticket = queue_.Add(bytes, [this, run] { Execute(run); });
}

Result<void> Connection::Prepare(ActiveRun& run, std::string& path) const {
  RunRequest& request = run.request;
  const ScriptFacts facts = ReadScript(request.job.source);
  request.job.imports = ImportNames(facts);
  auto chosen = ChooseRuntime(runtimes_, request.runtime, facts);
  if (chosen) {
    run.chosen = *chosen;
    return {};
  }
  const bool by_script = chosen.error().code == errors::kBlockLibraryUnavailable ||
                         chosen.error().code == errors::kBlockImportRefused;
  path = by_script ? "$.script" : request.runtime.empty() ? "" : "$.runtime";
  return Fail(std::move(chosen).error());
}

void Connection::Do(const CancelRequest& request) {
  if (const Run run = Find(request.id)) return Cancel(run);
  Refuse({.status = {.code = errors::kBlockUnknownRun, .message = "there is no run with this id"},
          .path = "$.id",
          .id = request.id,
          .op = "cancel"});
}

void Connection::Do(const CreditRequest& request) {
  RequestError error{.path = "$.id", .id = request.id, .op = "credit"};
  const Run run = Find(request.id);
  if (run == nullptr) {
    error.status = {.code = errors::kBlockUnknownRun, .message = "there is no run with this id"};
    return Refuse(error);
  }
  if (!run->credit.exists()) {
    error.status = {.code = errors::kBlockRequest,
                    .message = "the run was started without credit and has no window"};
    return Refuse(error);
  }
  run->credit.Add(request.bytes);
}

void Connection::Refuse(const RequestError& error) { (void)Answer(EncodeRefusal(error, line_)); }

void Connection::RefuseRun(const ActiveRun& run, Status status, std::string path) {
  if (status.span.known()) {
    status.message += " (line " + std::to_string(status.span.line) + " of the script)";
  }
  Refuse({.status = std::move(status), .path = std::move(path), .id = run.request.id, .op = "run"});
}

bool Connection::Answer(std::string text) {
  return output_->Write({std::move(text), {}, {}}, {ending_.get_token(), {}}) ==
         LineOutput::Written::kYes;
}

void Connection::Execute(const Run& run) {
  WireReceiver receiver(*run, *output_);
  const SettleOptions options{.debug = run->request.debug,
                              .max_part_bytes = options_.max_part_bytes};
  Finish(*run, RunBlock(*run->chosen.runtime, run->request.job, options, receiver,
                        run->stop.get_token()));
}

// The id is free once its end stands in the line, not before and not after.
void Connection::Finish(ActiveRun& run, const BlockOutcome& outcome) {
  std::string end = EncodeEnd(run.request.id, outcome);
  const std::lock_guard lock(mutex_);
  output_->Post(std::move(end));
  runs_.erase(run.request.id);
  over_.notify_all();
}

void Connection::Cancel(const Run& run) {
  run->stop.request_stop();
  bool waited = false;
  {
    const std::lock_guard lock(mutex_);
    waited = run->ticket && queue_.Remove(*run->ticket);
  }
  if (!waited) return;  // it runs, and hears of it
  BlockOutcome outcome;
  outcome.settled_by = SettledBy::kCancel;
  outcome.error = BlockError{.code = errors::kBlockCancelled,
                             .message = "the run was cancelled before it began"};
  Finish(*run, outcome);
}

void Connection::CancelAll() {
  std::vector<Run> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, run] : runs_) all.push_back(run);
  }
  for (const Run& run : all) Cancel(run);
}

void Connection::LiftWindows() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, run] : runs_) run->credit.Lift();
}

void Connection::WaitForRuns(int out) {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, kLookForReader, [this] { return runs_.empty(); })) {
    if (!ReaderHasGone(out)) continue;
    lock.unlock();
    CancelAll();
    lock.lock();
  }
}

Connection::Run Connection::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : found->second;
}

void Connection::StopReading() {
  ending_.request_stop();
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

}  // namespace caisson::block
