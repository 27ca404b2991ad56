// SPDX-License-Identifier: Apache-2.0
#include "cli/block_script.h"

#include <algorithm>
#include <string_view>

#include "base/foreign_text.h"
#include "cli/files.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kShownFrames = 20;

std::string_view LineOf(std::string_view text, std::uint32_t line) {
  for (std::uint32_t at = 1; at < line; ++at) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// The bytes of the first `count` characters.
std::uint32_t BytesOf(std::string_view line, std::uint32_t count) {
  std::size_t at = 0;
  while (count > 0 && at < line.size()) {
    ++at;
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) ++at;
    --count;
  }
  return static_cast<std::uint32_t>(at);
}

SourceSpan SpanOf(const block::BlockError& error, std::string_view text) {
  if (error.line == 0) return {};
  const std::string_view line = LineOf(text, error.line);
  const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  const std::uint32_t column =
      error.column == 0 ? static_cast<std::uint32_t>(first) : BytesOf(line, error.column - 1);
  return {error.line, column, error.line, column};
}

std::string RenderFrames(const block::BlockError& error, const BlockScript& script) {
  std::string text;
  const std::size_t skipped =
      error.frames.size() > kShownFrames ? error.frames.size() - kShownFrames : 0;
  if (skipped > 0) text += "  ... " + std::to_string(skipped) + " more calls\n";
  for (std::size_t i = skipped; i < error.frames.size(); ++i) {
    const isolate::TracebackFrame& frame = error.frames[i];
    text += "  " + ShowForeignLine(script.name) + ":" + std::to_string(frame.line) + ", in " +
            ShowForeignLine(frame.function, 200) + "\n";
  }
  return text;
}

}  // namespace

Result<BlockScript> ReadBlockScript(const std::string& file) {
  BlockScript script;
  script.name = file == "-" ? "<stdin>" : file;
  CAISSON_ASSIGN(script.text, ReadFile(file));
  return script;
}

std::vector<workflow::Diagnostic> ToDiagnostics(const std::vector<block::Finding>& findings,
                                                bool strict) {
  std::vector<workflow::Diagnostic> diagnostics;
  for (const block::Finding& finding : findings) {
    const bool is_error = strict || finding.severity == block::Severity::kError;
    diagnostics.push_back(
        {.code = finding.code,
         .severity = is_error ? workflow::Severity::kError : workflow::Severity::kWarning,
         .span = finding.span,
         .message = finding.message,
         .hint = finding.hint});
  }
  return diagnostics;
}

std::string RenderBlockError(const block::BlockError& error, const BlockScript& script, bool late,
                             bool color) {
  workflow::Diagnostic diagnostic{.code = error.code};
  if (late) diagnostic.severity = workflow::Severity::kWarning;
  diagnostic.span = SpanOf(error, script.text);
  diagnostic.message = late ? "after the final done: " : "";
  if (!error.type.empty()) diagnostic.message += error.type + ": ";
  diagnostic.message += error.message;
  if (!error.limit.empty()) {
    diagnostic.hint =
        "the limit is " + std::string(error.limit) + "; an option sets it, see --help";
  }
  std::string text = workflow::Render({diagnostic}, script.name, script.text,
                                      workflow::DiagnosticFormat::kText, color);
  if (!text.ends_with('\n')) text += '\n';
  // Of one frame the place above tells everything.
  return error.frames.size() > 1 ? text + RenderFrames(error, script) : text;
}

}  // namespace caisson::cli
