// SPDX-License-Identifier: Apache-2.0
// What the compiler has to say about a file. All diagnostics of a file are collected; the first
// error is the one that the peer compiler would report, the others follow in source order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::workflow {

enum class Severity : std::uint8_t { kError, kWarning };

struct Diagnostic {
  ErrorCode code;
  Severity severity = Severity::kError;
  SourceSpan span;      // where the caret goes; unknown for errors of a whole file
  std::string message;  // the peer's text without its "line N: " prefix
  std::string hint;     // what to do, may be empty
  // Where in a document without lines ("$.nodes[3].body"), or which graph of an IR ("IR subgraph
  // 'x'", which the message names too); may be empty.
  std::string path;
  // The line that the peer reports (0: none); differs from span.line where its checks point at an
  // enclosing construct or, for semantic errors, at nothing.
  std::uint32_t peer_line = 0;
  // An error of ours only: the peer compiles what this refuses (reserved keys, capabilities of the
  // artifact, literals that JSON cannot hold). Never the first while the peer has one of its own.
  bool peer_accepts = false;
};

enum class DiagnosticFormat { kText, kJson, kSarif };

// Renders for people (text: file:line:column, message, source line with caret, hint) or machines.
// `source` is the file's text; `color` only affects kText.
std::string Render(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                   std::string_view source, DiagnosticFormat format, bool color = false);

}  // namespace caisson::workflow
