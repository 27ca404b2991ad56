// SPDX-License-Identifier: Apache-2.0
#include "cli/isolation.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "cli/cpython_setup.h"
#include "cli/worker_words.h"
#include "errors/cli.h"

namespace caisson::cli {
namespace {

// What a worker needs beside the linear memory of its one instance: the engine, compiled code, a
// snapshot, the texts of the calls that it has at hand.
constexpr std::uint64_t kMemoryBeside = 768u << 20;

}  // namespace

Result<std::string> FindIsolateProgram(const std::string& given) {
  if (!given.empty()) {
    if (access(given.c_str(), X_OK) == 0) return given;
    return Fail(errors::kCliIsolateMissing, given + " is missing or cannot be executed");
  }
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return Fail(errors::kCliIsolateMissing,
                "this program does not find itself (/proc/self/exe: " + error.message() + ")");
  }
  std::string program = (own.parent_path() / "caisson-isolate").string();
  if (access(program.c_str(), X_OK) == 0) return program;
  return Fail(errors::kCliIsolateMissing,
              program + " is missing or cannot be executed; it belongs beside caisson");
}

Result<std::unique_ptr<isolate::WorkerRuntime>> OpenIsolation(const IsolationArguments& arguments) {
  isolate::WorkerOptions options;
  CAISSON_ASSIGN(options.executable, FindIsolateProgram(arguments.program));
  options.arguments = WorkerWords(arguments.limits);
  // Of two words for one variable the later one counts.
  if (!arguments.data_dir.empty()) {
    options.arguments.push_back("env:CAISSON_DATA_DIR=" + arguments.data_dir);
  }
  if (!arguments.cache_dir.empty()) {
    options.arguments.push_back("env:CAISSON_CACHE_DIR=" + arguments.cache_dir);
  }
  options.workers = static_cast<std::size_t>(arguments.workers);
  options.cgroup.memory_bytes = arguments.limits.memory_bytes + kMemoryBeside;
  if (arguments.allow_unjailed) options.allow_unjailed = jail::AllowUnjailed();
  return isolate::WorkerRuntime::Create(std::move(options));
}

Result<CpythonIsolation> CpythonIsolation::Open(const IsolationArguments& arguments,
                                                std::stop_token stop) {
  isolate::WorkerOptions options;
  CAISSON_ASSIGN(options.executable, FindIsolateProgram(arguments.program));
  options.workers = static_cast<std::size_t>(arguments.workers);
  if (arguments.allow_unjailed) options.allow_unjailed = jail::AllowUnjailed();
  CpythonIsolation isolation;
  CAISSON_ASSIGN(isolation.workers_,
                 OpenCpythonWorkers(std::move(options), arguments.limits.memory_bytes));
  isolation.calls_ =
      std::make_unique<isolate::ScriptCodeRuntime>(*isolation.workers_, std::move(stop));
  return isolation;
}

}  // namespace caisson::cli
