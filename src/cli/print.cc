// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/completions.h"
#include "json/writer.h"

namespace caisson::cli {

ExitCode PrintText(std::string_view text, Console& console) {
  auto printed = console.Print(text);
  return printed ? ExitCode::kOk : console.Complain(printed.error());
}

ExitCode PrintJson(const json::Value& value, Console& console) {
  Result<void> printed;
  const auto print = [&](std::string_view piece) {
    printed = console.Print(SafeJson(piece));
    return printed.has_value();
  };
  auto written = json::WritePieces(value, print, {.indent = 2});
  if (!written) return console.Complain(written.error());
  return printed && print("\n") ? ExitCode::kOk : console.Complain(printed.error());
}

ExitCode PrintCompletions(const CompletionsArguments& arguments, Console& console) {
  const std::vector<CommandInfo> commands = DescribeCommands();
  if (arguments.shell == "zsh") return PrintText(ZshCompletions(commands), console);
  if (arguments.shell == "fish") return PrintText(FishCompletions(commands), console);
  return PrintText(BashCompletions(commands), console);
}

}  // namespace caisson::cli
