// SPDX-License-Identifier: Apache-2.0
// In which Python the bodies of code nodes run. An IR says nothing of it: a deployment, a run or
// one node of it does. Grammar, imports and builtins are the same for all; what only one of them
// cannot do is a diagnostic where that one is chosen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::workflow {

enum class CodeRuntime : std::uint8_t { kMicroPython, kCPython };

std::string_view CodeRuntimeName(CodeRuntime runtime);  // "micropython", "cpython"
std::optional<CodeRuntime> FindCodeRuntime(std::string_view name);

struct CodeRuntimes {
  CodeRuntime all = CodeRuntime::kMicroPython;
  std::map<std::string, CodeRuntime, std::less<>> nodes;  // by id, in whichever graph

  CodeRuntime Of(std::string_view node_id) const;
  // Whether some node may have it.
  bool Uses(CodeRuntime runtime) const;
};

}  // namespace caisson::workflow
