// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each does all of its work on the calling thread, writes its result to standard
// output, says everything else on standard error, and returns the exit code.
#pragma once

#include "cli/arguments.h"
#include "cli/console.h"
#include "errors/exit_codes.h"

namespace caisson::cli {

ExitCode Check(const CheckArguments& arguments, Console& console);
ExitCode Compile(const CompileArguments& arguments, Console& console);
ExitCode MigrateWorkflow(const MigrateArguments& arguments, Console& console);
ExitCode RunWorkflow(const RunArguments& arguments, Console& console);
ExitCode PrintSchemas(const SchemaArguments& arguments, Console& console);
ExitCode DrawGraph(const GraphArguments& arguments, Console& console);
ExitCode Describe(const DescribeArguments& arguments, Console& console);
ExitCode Doctor(const DoctorArguments& arguments, Console& console);
ExitCode Runtimes(const RuntimesArguments& arguments, Console& console);
ExitCode Images(const ImagesArguments& arguments, Console& console);
ExitCode Machined(const MachinedArguments& arguments, Console& console);
ExitCode ExplainEgress(const EgressArguments& arguments, Console& console);
ExitCode ManageRuns(const RunsCommand& command, Console& console);
ExitCode ManageSecrets(const SecretsArguments& arguments, Console& console);
ExitCode ListNodes(const NodesArguments& arguments, Console& console);
ExitCode PrintCompletions(const CompletionsArguments& arguments, Console& console);

// Writes `value` as indented JSON with a line end, piece by piece; complains when that fails.
ExitCode PrintJson(const json::Value& value, Console& console);
// Prints a finished text; complains when that fails.
ExitCode PrintText(std::string_view text, Console& console);

}  // namespace caisson::cli
