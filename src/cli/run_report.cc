// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.h"

#include <cmath>
#include <string_view>

#include "base/foreign_text.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

std::string_view LineOf(std::string_view text, std::uint32_t line) {
  for (std::uint32_t at = 1; at < line; ++at) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

std::string Place(const graph::RunError& error) {
  const std::string& node = error.node_path.empty() ? error.node_id : error.node_path;
  std::string text;
  if (!node.empty()) text += "node '" + node + "'";
  if (error.step > 0) text += (text.empty() ? "step " : ", step ") + std::to_string(error.step);
  return text;
}

constexpr std::size_t kShownName = 200;
constexpr std::size_t kShownLine = 200;

std::string Name(const LoadedSource& source) { return ShowForeignLine(source.name, kShownName); }

std::string Frame(const graph::AuthorFrame& frame, const LoadedSource& source) {
  const std::string function = ShowForeignLine(frame.function, kShownName);
  if (frame.file_line == 0 || source.is_ir) {
    return "  line " + std::to_string(frame.body_line) + " of the body, in " + function + "\n";
  }
  std::string text =
      "  " + Name(source) + ":" + std::to_string(frame.file_line) + ", in " + function + "\n";
  const std::string_view line = LineOf(source.text, frame.file_line);
  if (!line.empty()) text.append("    ").append(ShowForeignLine(line, kShownLine)).append("\n");
  return text;
}

std::string Printed(std::string_view output) {
  while (output.ends_with('\n')) output.remove_suffix(1);
  return "  the code printed:\n    | " + ShowForeign(output, "    | ") + "\n";
}

std::string Headline(const graph::RunError& error) {
  std::string text;
  if (const std::string place = Place(error); !place.empty()) text += place + ": ";
  if (!error.error_type.empty()) text += error.error_type + ": ";
  return ShowForeign(text + error.message) + "\n";
}

std::string RenderText(const graph::RunError& error, const LoadedSource& source, bool color) {
  std::string text = color ? "caisson: \x1b[1;31merror[" : "caisson: error[";
  text += std::string(error.code.name) + (color ? "]:\x1b[0m " : "]: ");
  text += Headline(error);
  for (const graph::AuthorFrame& frame : error.traceback) text += Frame(frame, source);
  if (error.traceback.empty() && error.span.known() && !source.is_ir) {
    text += "  " + Name(source) + ":" + std::to_string(error.span.line) + "\n";
  }
  if (!error.hint.empty()) text += "  hint: " + ShowForeign(error.hint) + "\n";
  if (!error.guest_output.empty()) text += Printed(error.guest_output);
  return text;
}

}  // namespace

json::Value RunReport(const graph::RunResult& result) {
  const double milliseconds = static_cast<double>(result.duration.count()) / 1e6;
  return json::Object{{"status", graph::RunStatusName(result.status)},
                      {"run_id", result.run_id},
                      {"steps", result.steps},
                      {"node_visits", result.node_visits},
                      {"runtimes", result.runtimes},
                      {"duration_ms", std::round(milliseconds * 1000) / 1000},
                      {"state", result.state},
                      {"error", result.error ? result.error->ToJson() : json::Value()}};
}

std::string RenderRunError(const graph::RunError& error, const LoadedSource& source,
                           workflow::DiagnosticFormat format, bool color) {
  if (format == workflow::DiagnosticFormat::kText) return RenderText(error, source, color);
  auto text = json::Write(error.ToJson());
  return text ? SafeJson(*text) + "\n" : RenderText(error, source, false);
}

}  // namespace caisson::cli
