// SPDX-License-Identifier: Apache-2.0
#include "cli/mode.h"

#include <algorithm>
#include <utility>

#include "errors/cli.h"

namespace caisson::cli {
namespace {

std::string Normalize(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  std::string word(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word;
}

Result<ModeChoice> Understand(const std::string& origin, std::string_view text) {
  const std::string word = Normalize(text);
  if (word == "restricted") return ModeChoice{.was_set = true};
  if (word == "unrestricted") {
    return Fail(errors::kCliModeUnavailable,
                "the mode 'unrestricted' (" + origin +
                    ") does not exist yet: it would run workflow files in this process without "
                    "isolation; use 'restricted'");
  }
  return Fail(errors::kCliUsage, origin + " must be 'restricted' or 'unrestricted'.");
}

std::string_view SandboxesOf(const workflow::CodeRuntimes& runtimes) {
  if (!runtimes.Uses(workflow::CodeRuntime::kCPython)) return "MicroPython-WASM sandbox";
  if (!runtimes.Uses(workflow::CodeRuntime::kMicroPython)) return "CPython-WASM sandbox";
  return "MicroPython-WASM and CPython-WASM sandboxes";
}

}  // namespace

Result<ModeChoice> ChooseMode(const std::optional<std::string>& option,
                              const Environment& environment) {
  if (option) return Understand("--mode", *option);
  for (const char* name : {"CAISSON_WORKFLOW_DEFINITION_MODE", "ORCHEO_WORKFLOW_DEFINITION_MODE"}) {
    if (const char* value = environment(name)) return Understand(name, value);
  }
  return ModeChoice{};
}

std::string StartupLine(const ModeChoice& choice, const workflow::CodeRuntimes& runtimes) {
  const std::string compiled =
      "compile to a frozen IR and CodeNode bodies run in the " + std::string(SandboxesOf(runtimes));
  if (choice.was_set) return "Workflow definition mode: restricted — uploads " + compiled;
  return "Workflow definition mode is not set and behaves as restricted (unrestricted does not "
         "exist yet): files " +
         compiled + "; --mode restricted says so by name";
}

}  // namespace caisson::cli
