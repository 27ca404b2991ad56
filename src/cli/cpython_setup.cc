// SPDX-License-Identifier: Apache-2.0
#include "cli/cpython_setup.h"

#include <utility>

#include "cli/files.h"
#include "cli/isolation.h"
#include "errors/cli.h"
#include "errors/isolate.h"
#include "errors/wasm.h"
#include "os/run_program.h"
#include "wasm/cache_directory.h"

namespace caisson::cli {
namespace {

// What a worker needs beside the memory of its one script: the engine, compiled code, snapshots,
// texts on their way.
constexpr std::uint64_t kMemoryBeside = 1u << 30;
constexpr std::uint64_t kProbeMemory = 512u << 20;

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t last = text.rfind('\n');
  return std::string(last == std::string_view::npos ? text : text.substr(last + 1));
}

// Fails with `code`, what failed, and the last words of the program.
Result<void> RunStep(std::vector<std::string> words, ErrorCode code, std::string_view failure,
                     Console& console, const std::stop_token& stop) {
  const os::Program program{.arguments = std::move(words),
                            .on_message = [&console](std::string_view line) {
                              console.Info("cpython: " + std::string(line));
                            }};
  CAISSON_ASSIGN(const os::ProgramEnd ended, os::RunProgram(program, stop));
  if (ended.succeeded()) return {};
  if (stop.stop_requested()) {
    return Fail(errors::kCliCancelled, "the preparation of the runtime cpython was cancelled");
  }
  return Fail(code, std::string(failure) + ": " + LastLine(ended.messages));
}

// Later workers need not compute the digests of half a gigabyte again.
std::vector<std::string> CheckedWords(const json::Value& describe) {
  std::vector<std::string> words;
  const json::Value* stamps = describe.Find("checked");
  if (stamps == nullptr || !stamps->is_array()) return words;
  for (const json::Value& stamp : stamps->as_array()) {
    if (stamp.is_string()) words.push_back(isolate::cpython::CheckedWord(stamp.as_string()));
  }
  return words;
}

}  // namespace

isolate::cpython::CPythonOptions CpythonOptions() {
  isolate::cpython::CPythonOptions options;
  // Workers have no environment that would tell them.
  options.directory = isolate::cpython::DefaultDirectory();
  options.cache_dir = wasm::DefaultCacheDir();
  options.tenant = "local";  // one process serves one tenant: its operator
  return options;
}

Result<std::unique_ptr<isolate::ScriptWorkerRuntime>> OpenCpythonWorkers(
    isolate::WorkerOptions options, std::uint64_t memory_bytes) {
  if (options.executable == isolate::WorkerOptions().executable) {
    CAISSON_ASSIGN(options.executable, FindIsolateProgram());
  }
  const isolate::cpython::CPythonOptions runtime = CpythonOptions();
  if (!isolate::cpython::HasArtifact(runtime)) {
    return Fail(errors::kWasmArtifact, "its artifact is not in " + runtime.directory +
                                           "; fetch and prepare it with `caisson runtimes install "
                                           "cpython`, or set CAISSON_DATA_DIR");
  }
  options.arguments = isolate::cpython::WordsFromOptions(runtime);
  options.arguments.insert(options.arguments.begin(), "runtime=cpython");
  options.cgroup.memory_bytes = memory_bytes + kMemoryBeside;
  options.learn = CheckedWords;
  return isolate::ScriptWorkerRuntime::Create(std::move(options));
}

Result<void> FetchCpython(Console& console, const std::stop_token& stop) {
  return RunStep(
      {"python3", RuntimesDirectory() + "/fetch_cpython.py", isolate::cpython::DefaultDirectory()},
      errors::kWasmArtifact, "the artifact of the runtime cpython cannot be fetched", console,
      stop);
}

Result<void> FillCpythonCache(Console& console, const std::stop_token& stop) {
  CAISSON_ASSIGN(std::string program, FindIsolateProgram());
  std::vector<std::string> words = {std::move(program), "__prepare", "cpython"};
  const auto options = isolate::cpython::WordsFromOptions(CpythonOptions());
  words.insert(words.end(), options.begin(), options.end());
  return RunStep(std::move(words), errors::kIsolateNotPrepared,
                 "the runtime cpython cannot be prepared", console, stop);
}

Result<void> ProbeCpython() {
  CAISSON_ASSIGN(const auto workers, OpenCpythonWorkers({.workers = 1}, kProbeMemory));
  return workers->Warm();
}

}  // namespace caisson::cli
