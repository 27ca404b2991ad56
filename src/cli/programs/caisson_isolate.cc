// SPDX-License-Identifier: Apache-2.0
// caisson-isolate: the program of an isolate worker. Started by caisson only; see cli/isolation.h.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/worker_words.h"
#include "errors/exit_codes.h"
#include "isolate/micropython/executor.h"
#include "isolate/worker/worker.h"

namespace caisson::cli {
namespace {

int Refuse(const Status& status) {
  std::fprintf(stderr, "caisson-isolate: %s\n", status.message.c_str());
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

}  // namespace
}  // namespace caisson::cli

int main(int argc, char** argv) {
  auto command = caisson::isolate::ParseWorkerCommand(argc, argv);
  if (!command) return caisson::cli::Refuse(command.error());
  auto setup = caisson::cli::ParseWorkerWords(command->arguments);
  if (!setup) return caisson::cli::Refuse(setup.error());
  return caisson::isolate::WorkerMain(*command, caisson::cli::FactoryOf(*std::move(setup)));
}
