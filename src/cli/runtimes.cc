// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "cli/commands.h"
#include "cli/cpython_setup.h"
#include "cli/interrupt.h"
#include "cli/runtime_report.h"

namespace caisson::cli {
namespace {

Result<void> InstallCpython(Console& console) {
  const Interrupt interrupt(console);
  CAISSON_TRY(FetchCpython(console, interrupt.token()));
  CAISSON_TRY(FillCpythonCache(console, interrupt.token()));
  return ProbeCpython();
}

ExitCode List(const RuntimesArguments& arguments, Console& console) {
  const auto reports = ExamineRuntimes(console);
  if (!arguments.json && isatty(STDOUT_FILENO) == 1) return PrintText(ToTable(reports), console);
  return PrintJson(json::Object{{"runtimes", ToJson(reports)}}, console);
}

}  // namespace

ExitCode Runtimes(const RuntimesArguments& arguments, Console& console) {
  switch (arguments.action) {
    case RuntimesArguments::Action::kInstall: {
      auto installed = InstallCpython(console);
      if (!installed) return console.Complain(installed.error());
      console.Info("the runtime " + arguments.name + " is ready");
      return ExitCode::kOk;
    }
    case RuntimesArguments::Action::kList:
      return List(arguments, console);
  }
  std::abort();
}

}  // namespace caisson::cli
