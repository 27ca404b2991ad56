// SPDX-License-Identifier: Apache-2.0
// caisson-isolate: the program of an isolate worker. Started by caisson only; see cli/isolation.h.
//
//   caisson-isolate __worker WORD … TICKET                   MicroPython (cli/worker_words.h)
//   caisson-isolate __worker runtime=cpython WORD … TICKET   CPython (isolate/cpython/options.h)
//   caisson-isolate __prepare cpython WORD …                 fills the cache of CPython; says on
//                                                            stderr how far it is
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/foreign_text.h"
#include "cli/worker_words.h"
#include "errors/exit_codes.h"
#include "isolate/cpython/executor.h"
#include "isolate/cpython/prepare.h"
#include "isolate/cpython/seal.h"
#include "isolate/micropython/executor.h"
#include "isolate/worker/script_worker.h"
#include "isolate/worker/worker.h"

namespace caisson::cli {
namespace {

int Refuse(const Status& status) {
  std::fprintf(stderr, "caisson-isolate: %s\n", ShowForeign(status.message).c_str());
  return static_cast<int>(ExitCode::kUsage);
}

isolate::ExecutorFactory FactoryOf(WorkerSetup setup) {
  return [setup = std::move(setup)] {
    for (const auto& [name, value] : setup.variables) setenv(name.c_str(), value.c_str(), 1);
    isolate::MicroPythonOptions options;
    options.heap_sizes = {setup.limits.heap_bytes};
    options.max_memory_bytes = setup.limits.memory_bytes;
    options.max_concurrent_calls = 1;
    auto executor = isolate::MicroPythonExecutor::Create(options);
    clearenv();
    return executor;
  };
}

constexpr std::string_view kCPythonWord = "runtime=cpython";

bool IsCPython(const isolate::WorkerCommand& command) {
  return !command.arguments.empty() && command.arguments.front() == kCPythonWord;
}

int ServeCPython(const isolate::WorkerCommand& command) {
  const auto options =
      isolate::cpython::OptionsFromWords({command.arguments.begin() + 1, command.arguments.end()});
  if (!options) return Refuse(options.error());
  return isolate::ScriptWorkerMain(command, [&]() -> Result<isolate::ScriptWorkerParts> {
    CAISSON_ASSIGN(auto executor, isolate::cpython::CPythonExecutor::Create(*options));
    isolate::ScriptWorkerParts parts;
    parts.syscalls = isolate::cpython::SealSyscalls(executor->pagemap_descriptor());
    parts.executor = std::move(executor);
    return parts;
  });
}

int Prepare(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "cpython") {
    std::fputs("caisson-isolate: only the runtime cpython is prepared beforehand\n", stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  const auto options = isolate::cpython::OptionsFromWords({words.begin() + 1, words.end()});
  if (!options) return Refuse(options.error());
  const auto prepared = isolate::cpython::Prepare(
      *options, [](const auto& progress) { std::fprintf(stderr, "%s\n", progress.text.c_str()); },
      {});
  if (prepared) return 0;
  std::fprintf(stderr, "caisson-isolate: %s\n", prepared.error().message.c_str());
  return static_cast<int>(ExitCode::kUnavailable);
}

}  // namespace
}  // namespace caisson::cli

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "__prepare") {
    return caisson::cli::Prepare({argv + 2, argv + argc});
  }
  auto command = caisson::isolate::ParseWorkerCommand(argc, argv);
  if (!command) return caisson::cli::Refuse(command.error());
  if (caisson::cli::IsCPython(*command)) return caisson::cli::ServeCPython(*command);
  auto setup = caisson::cli::ParseWorkerWords(command->arguments);
  if (!setup) return caisson::cli::Refuse(setup.error());
  return caisson::isolate::WorkerMain(*command, caisson::cli::FactoryOf(*std::move(setup)));
}
