// SPDX-License-Identifier: Apache-2.0
#include "cli/block_cpython.h"

#include <utility>

#include "cli/cpython_setup.h"
#include "errors/block.h"
#include "errors/isolate.h"

namespace caisson::cli {
namespace {

std::unexpected<Status> Stopped() {
  return Fail(errors::kBlockCancelled, "the run was cancelled before it began");
}

}  // namespace

Result<std::unique_ptr<BlockCpython>> BlockCpython::Open(const BlockRuntimeArguments& arguments,
                                                         std::size_t runs,
                                                         std::uint64_t memory_bytes,
                                                         Console& console) {
  isolate::WorkerOptions options;
  options.workers = arguments.workers != 0 ? static_cast<std::size_t>(arguments.workers) : runs;
  if (arguments.allow_unjailed) options.allow_unjailed = jail::AllowUnjailed();
  CAISSON_ASSIGN(auto workers, OpenCpythonWorkers(std::move(options), memory_bytes));
  return std::unique_ptr<BlockCpython>(new BlockCpython(std::move(workers), console));
}

BlockCpython::BlockCpython(std::unique_ptr<isolate::ScriptWorkerRuntime> workers, Console& console)
    : workers_(std::move(workers)), console_(console) {}

Result<void> BlockCpython::Prepare(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [this] { return !at_work_; });
  if (stop.stop_requested()) return Stopped();
  if (ready_) return {};
  at_work_ = true;
  lock.unlock();
  auto started = StartAWorker(stop);
  lock.lock();
  at_work_ = false;
  ready_ = started.has_value();
  changed_.notify_all();
  return started;
}

Result<void> BlockCpython::StartAWorker(const std::stop_token& stop) {
  auto warm = workers_->Warm();
  if (warm || warm.error().code != errors::kIsolateNotPrepared) return warm;
  auto filled = FillCpythonCache(console_, stop);
  if (!filled && stop.stop_requested()) return Stopped();
  CAISSON_TRY(filled);
  return workers_->Warm();
}

Result<isolate::ScriptOutcome> BlockCpython::Run(const isolate::ScriptJob& job,
                                                 isolate::ScriptSink& sink, std::stop_token stop) {
  CAISSON_TRY(Prepare(stop));
  return workers_->Run(job, sink, std::move(stop));
}

}  // namespace caisson::cli
