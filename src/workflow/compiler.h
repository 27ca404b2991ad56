// SPDX-License-Identifier: Apache-2.0
// workflow.py -> frozen IR, without running a line of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "workflow/code_runtime.h"
#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

inline constexpr std::size_t kMaxSourceBytes = 524288;

struct CompileOptions {
  bool strict = false;              // warnings count as errors
  bool enforce_node_policy = true;  // off only for trusted first-party sources
  CodeRuntimes runtimes;            // what the bodies are checked for
};

// The side products of a source that are not part of the IR.
struct SourceIndex {
  json::Value json;  // {"cron":[...],"listeners":[...],"credentials":[...]}
};

struct CompileResult {
  std::shared_ptr<const Graph> graph;  // null when there are errors
  SourceIndex index;
  std::vector<Diagnostic> diagnostics;  // errors and warnings in the order of section 10.1
  // The JSON Schemas of the file's tools and response formats by where they are used, for
  // `caisson schema`.
  std::vector<std::pair<std::string, json::Value>> schemas;
  bool ok() const { return graph != nullptr; }
};

// `source` is the bytes of the file; never fails other than by diagnostics.
CompileResult Compile(std::string_view source, const CompileOptions& options = {});

}  // namespace caisson::workflow
