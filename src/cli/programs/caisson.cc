// SPDX-License-Identifier: Apache-2.0
// The caisson command: parses the command line and calls one subcommand.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <string_view>
#include <type_traits>

#include "cli/arguments.h"
#include "cli/block.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/service.h"
#include "egress/gate/program.h"
#include "errors/internal.h"

namespace caisson::cli {
namespace {

// Closed standard descriptors would be taken by the next file that is opened. The stand-in for
// standard output refuses writing, so that a lost result is noticed.
void KeepStandardDescriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != descriptor) close(opened);
  }
}

struct Dispatch {
  Console& console;
  ExitCode operator()(const PrintArguments& wish) { return PrintText(wish.text, console); }
  ExitCode operator()(const CheckArguments& wish) { return Check(wish, console); }
  ExitCode operator()(const CompileArguments& wish) { return Compile(wish, console); }
  ExitCode operator()(const MigrateArguments& wish) { return MigrateWorkflow(wish, console); }
  ExitCode operator()(const RunArguments& wish) { return RunWorkflow(wish, console); }
  ExitCode operator()(const SchemaArguments& wish) { return PrintSchemas(wish, console); }
  ExitCode operator()(const GraphArguments& wish) { return DrawGraph(wish, console); }
  ExitCode operator()(const DescribeArguments& wish) { return Describe(wish, console); }
  ExitCode operator()(const DoctorArguments& wish) { return Doctor(wish, console); }
  ExitCode operator()(const RuntimesArguments& wish) { return Runtimes(wish, console); }
  ExitCode operator()(const ImagesArguments& wish) { return Images(wish, console); }
  ExitCode operator()(const ServiceArguments& wish) { return Service(wish, console); }
  ExitCode operator()(const BlockArguments& wish) { return Block(wish, console); }
  ExitCode operator()(const MachinedArguments& wish) { return Machined(wish, console); }
  ExitCode operator()(const EgressArguments& wish) { return ExplainEgress(wish, console); }
  ExitCode operator()(const RunsCommand& wish) { return ManageRuns(wish, console); }
  ExitCode operator()(const NodesArguments& wish) { return ListNodes(wish, console); }
  ExitCode operator()(const CompletionsArguments& wish) { return PrintCompletions(wish, console); }
};

ExitCode Main(int argc, char** argv, Console& console) {
  try {
    auto arguments = ParseArguments(argc, argv);
    if (!arguments) return console.Complain(arguments.error());
    return std::visit(Dispatch{console}, *arguments);
  } catch (const std::exception& error) {  // no memory, most likely
    return console.Complain({.code = errors::kInternalFailed, .message = error.what()});
  }
}

}  // namespace
}  // namespace caisson::cli

int main(int argc, char** argv) {
  // Not for people: `caisson machined` starts it (egress/gate_process.h).
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate") {
    return caisson::egress::gate::GateMain(argv[argc - 1]);
  }
  caisson::cli::KeepStandardDescriptors();
  // A reader that has gone and a limit on file sizes are errors of write(2).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  caisson::cli::Console console;
  return static_cast<int>(caisson::cli::Main(argc, argv, console));
}
