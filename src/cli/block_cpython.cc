// SPDX-License-Identifier: Apache-2.0
#include "cli/block_cpython.h"

#include <utility>

#include "cli/isolation.h"
#include "errors/block.h"
#include "errors/isolate.h"
#include "errors/wasm.h"
#include "isolate/cpython/options.h"
#include "os/run_program.h"
#include "wasm/cache_directory.h"

namespace caisson::cli {
namespace {

// What a worker needs beside the memory of its one script: the engine, compiled code, snapshots,
// texts on their way.
constexpr std::uint64_t kMemoryBeside = 1u << 30;

isolate::cpython::CPythonOptions Options() {
  isolate::cpython::CPythonOptions options;
  // Workers have no environment that would tell them.
  options.directory = isolate::cpython::DefaultDirectory();
  options.cache_dir = wasm::DefaultCacheDir();
  options.tenant = "local";  // one process serves one tenant: its operator
  return options;
}

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t last = text.rfind('\n');
  return std::string(last == std::string_view::npos ? text : text.substr(last + 1));
}

std::unexpected<Status> Stopped() {
  return Fail(errors::kBlockCancelled, "the run was cancelled before it began");
}

}  // namespace

Result<std::unique_ptr<BlockCpython>> BlockCpython::Open(const BlockRuntimeArguments& arguments,
                                                         std::size_t runs,
                                                         std::uint64_t memory_bytes,
                                                         Console& console) {
  CAISSON_ASSIGN(std::string program, FindIsolateProgram());
  const isolate::cpython::CPythonOptions options = Options();
  if (!isolate::cpython::HasArtifact(options)) {
    return Fail(errors::kWasmArtifact,
                "its artifact is not in " + options.directory +
                    "; fetch it with tools/fetch_deps.py cpython, or set CAISSON_DATA_DIR");
  }
  std::vector<std::string> words = isolate::cpython::WordsFromOptions(options);
  isolate::WorkerOptions workers;
  workers.executable = program;
  workers.arguments = {"runtime=cpython"};
  workers.arguments.insert(workers.arguments.end(), words.begin(), words.end());
  workers.workers = arguments.workers != 0 ? static_cast<std::size_t>(arguments.workers) : runs;
  workers.cgroup.memory_bytes = memory_bytes + kMemoryBeside;
  if (arguments.allow_unjailed) workers.allow_unjailed = jail::AllowUnjailed();
  CAISSON_ASSIGN(auto runtime, isolate::ScriptWorkerRuntime::Create(std::move(workers)));
  return std::unique_ptr<BlockCpython>(
      new BlockCpython(std::move(program), std::move(words), std::move(runtime), console));
}

BlockCpython::BlockCpython(std::string program, std::vector<std::string> words,
                           std::unique_ptr<isolate::ScriptWorkerRuntime> workers, Console& console)
    : program_(std::move(program)),
      words_(std::move(words)),
      workers_(std::move(workers)),
      console_(console) {}

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
  CAISSON_TRY(FillCache(stop));
  return workers_->Warm();
}

Result<void> BlockCpython::FillCache(const std::stop_token& stop) {
  os::Program program{.arguments = {program_, "__prepare", "cpython"},
                      .on_message = [this](std::string_view line) {
                        console_.Info("cpython: " + std::string(line));
                      }};
  program.arguments.insert(program.arguments.end(), words_.begin(), words_.end());
  CAISSON_ASSIGN(const os::ProgramEnd ended, os::RunProgram(program, stop));
  if (ended.succeeded()) return {};
  if (stop.stop_requested()) return Stopped();
  return Fail(errors::kIsolateNotPrepared,
              "the runtime cpython could not be prepared: " + LastLine(ended.messages));
}

Result<isolate::ScriptOutcome> BlockCpython::Run(const isolate::ScriptJob& job,
                                                 isolate::ScriptSink& sink, std::stop_token stop) {
  CAISSON_TRY(Prepare(stop));
  return workers_->Run(job, sink, std::move(stop));
}

}  // namespace caisson::cli
