// SPDX-License-Identifier: Apache-2.0
// One connection of the block service: its requests, its runs, its answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "block/credit.h"
#include "block/line_output.h"
#include "block/request.h"
#include "block/run_queue.h"
#include "block/service.h"

namespace caisson::block {

// A run that was accepted and is not over.
struct ActiveRun {
  explicit ActiveRun(RunRequest accepted) : request(std::move(accepted)), credit(request.credit) {}

  RunRequest request;
  ChosenRuntime chosen{};
  CreditWindow credit;
  std::stop_source stop;
  std::optional<RunQueue::Ticket> ticket;  // once it waits; guarded by the connection
};

class Connection {
 public:
  Connection(const RuntimeSet& runtimes, const ServiceOptions& options, RunQueue& queue)
      : runtimes_(runtimes), options_(options), queue_(queue) {}

  Result<int> Serve(int in, int out, const std::stop_token& stop, std::string hello);

 private:
  using Run = std::shared_ptr<ActiveRun>;

  void ReadRequests(int in);
  void Handle(std::string_view line);
  void Do(RunRequest request);
  void Do(const CancelRequest& request);
  void Do(const CreditRequest& request);
  Result<void> Prepare(ActiveRun& run, std::string& path) const;
  void Refuse(const RequestError& error);
  void RefuseRun(const ActiveRun& run, Status status, std::string path);
  // Answers through the queue of lines; false: nobody reads any more.
  bool Answer(std::string text);

  void Execute(const Run& run);
  void Finish(ActiveRun& run, const BlockOutcome& outcome);
  void Cancel(const Run& run);
  void CancelAll();
  void LiftWindows();
  void WaitForRuns(int out);
  Run Find(const std::string& id);
  void StopReading();

  const RuntimeSet& runtimes_;
  const ServiceOptions& options_;
  RunQueue& queue_;

  std::unique_ptr<LineOutput> output_;
  os::UniqueFd wake_;  // readable: no more requests
  std::stop_source ending_;
  std::uint64_t line_ = 0;

  std::mutex mutex_;
  std::condition_variable over_;
  std::map<std::string, Run> runs_;
};

}  // namespace caisson::block
