// SPDX-License-Identifier: Apache-2.0
// What can be read off a script without running it. The guest's own parser has the last word on
// syntax: runtimes have a Python of their own, newer or older than the grammar known here (3.12).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "python/parser.h"

namespace caisson::block {

struct ImportedModule {
  std::string name;  // top level: "numpy" of `import numpy.linalg`
  SourceSpan span;   // of the statement; unknown when the source could not be parsed
  // It will be executed, and nothing around it catches its failure.
  bool certain = false;
};

// Something that the compiler of CPython refuses behind its parser ('return' outside function).
struct MisplacedStatement {
  std::string message;
  SourceSpan span;
};

struct NewerSyntax {
  std::string_view what;
  int minor;  // Python 3.<minor> has it
  SourceSpan span;
};

struct ScriptFacts {
  std::optional<python::SyntaxError> syntax_error;  // then only `imports` is filled, by guesswork
  std::vector<ImportedModule> imports;              // in the order of the source
  std::vector<MisplacedStatement> misplaced;        // the same
  std::vector<NewerSyntax> newer;                   // than 3.11
  SourceSpan top_level_await;                       // the first one
  bool may_call_done = false;                       // names `done`, or runs text that may
};

ScriptFacts ReadScript(std::string_view source);

// The names of the imports, each once.
std::vector<std::string> ImportNames(const ScriptFacts& facts);

}  // namespace caisson::block
