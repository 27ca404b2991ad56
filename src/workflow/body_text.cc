// SPDX-License-Identifier: Apache-2.0
#include "workflow/body_text.h"

#include <algorithm>
#include <optional>

#include "python/printer.h"
#include "workflow/body_parse.h"

namespace caisson::workflow {
namespace {

// Length of the line break at `at`, 0 when there is none. `odd`: also those that only
// str.splitlines knows.
std::size_t BreakLength(std::string_view source, std::size_t at, bool odd) {
  const char c = source[at];
  if (c == '\n') return 1;
  if (c == '\r') return source.substr(at + 1).starts_with('\n') ? 2 : 1;
  if (!odd) return 0;
  if (c == '\v' || c == '\f' || (c >= '\x1c' && c <= '\x1e')) return 1;
  const std::string_view rest = source.substr(at);
  if (rest.starts_with("\xC2\x85")) return 2;
  return rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9") ? 3 : 0;
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::vector<std::string_view> SplitAtNewlines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find('\n', start)) != std::string_view::npos; start = end + 1) {
    lines.push_back(text.substr(start, end - start));
  }
  lines.push_back(text.substr(start));
  return lines;
}

// The longest leading blank text that all lines with content share.
std::string_view CommonMargin(const std::vector<std::string_view>& lines) {
  std::optional<std::string_view> margin;
  for (std::string_view line : lines) {
    if (IsBlank(line)) continue;
    const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
    if (!margin) margin = indent;
    const auto differ = std::ranges::mismatch(*margin, indent);
    margin = margin->substr(0, static_cast<std::size_t>(differ.in1 - margin->begin()));
  }
  return margin.value_or(std::string_view());
}

// Python's textwrap.dedent, then strip of newlines.
std::string Dedent(std::string_view text) {
  const std::vector<std::string_view> lines = SplitAtNewlines(text);
  const std::size_t margin = CommonMargin(lines).size();
  std::string out;
  out.reserve(text.size());
  for (std::string_view line : lines) {
    if (!IsBlank(line)) out += line.substr(margin);
    out += '\n';
  }
  const auto first = out.find_first_not_of('\n');
  if (first == std::string::npos) return {};
  return out.substr(first, out.find_last_not_of('\n') - first + 1);
}

std::string Segments(python::List<python::Stmt*> body, const SourceLines& lines) {
  std::string text;
  for (const python::Stmt* stmt : body) {
    const std::size_t start = lines.Offset(stmt->span.line, stmt->span.column);
    const std::size_t end = lines.Offset(stmt->span.end_line, stmt->span.end_column);
    if (!text.empty()) text += '\n';
    text += lines.source().substr(start, end - start);
  }
  return text;
}

std::string PeerText(const python::FunctionDef& run, const SourceLines& lines) {
  const SourceSpan first = run.body.front()->span;
  if (first.line == run.span.line) return Dedent(Segments(run.body, lines));
  return Dedent(lines.JoinSplitLines(first.line, run.body.back()->span.end_line));
}

// A printed line that is one string literal and nothing else: a docstring or a string as comment.
bool IsBareString(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with('u')) line.remove_prefix(1);
  if (line.empty() || (line.front() != '"' && line.front() != '\'')) return false;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == line.front()) {
      return i + 1 == line.size();
    }
  }
  return false;
}

std::string WithoutBareStrings(const std::string& printed) {
  std::string out;
  out.reserve(printed.size());
  for (std::string_view line : SplitAtNewlines(printed)) {
    if (!IsBareString(line)) out.append(line).append("\n");
  }
  return out;
}

// Strings that stand alone mean nothing, so dedenting may shift their lines.
bool MeansTheSame(const std::string& text, const std::string& printed) {
  const auto parsed = ParseBody(text);
  if (!parsed) return false;
  const std::string again = python::Print(parsed->statements).text;
  return again == printed || WithoutBareStrings(again) == WithoutBareStrings(printed);
}

}  // namespace

SourceLines::SourceLines(std::string_view source) : source_(source), starts_{0} {
  std::size_t split_start = 0;
  for (std::size_t at = 0; at < source.size();) {
    // Most characters cannot begin a break, whatever its kind.
    const auto first = static_cast<unsigned char>(source[at]);
    if (first > 0x1E && first != 0xC2 && first != 0xE2) {
      ++at;
      continue;
    }
    const std::size_t odd = BreakLength(source, at, true);
    if (odd == 0) {
      ++at;
      continue;
    }
    split_lines_.push_back(source.substr(split_start, at - split_start));
    if (BreakLength(source, at, false) != 0) starts_.push_back(at + odd);
    at += odd;
    split_start = at;
  }
  if (split_start < source.size()) split_lines_.push_back(source.substr(split_start));
}

std::size_t SourceLines::Offset(std::uint32_t line, std::uint32_t column) const {
  if (line == 0 || line > starts_.size()) return source_.size();
  return std::min(starts_[line - 1] + column, source_.size());
}

std::string SourceLines::JoinSplitLines(std::uint32_t first, std::uint32_t last) const {
  std::string text;
  for (std::size_t i = first - 1; i < std::min<std::size_t>(last, split_lines_.size()); ++i) {
    if (i != first - 1) text += '\n';
    text += split_lines_[i];
  }
  return text;
}

BodyTextResult BodyText(const python::FunctionDef& run, const SourceLines& lines) {
  std::string printed = python::Print(run.body).text;
  std::string peer = PeerText(run, lines);
  if (MeansTheSame(peer, printed)) {
    const std::uint32_t first = run.body.front()->span.line;
    return {std::move(peer), first == run.span.line ? 0 : first};
  }
  while (printed.ends_with('\n')) printed.pop_back();
  return {std::move(printed), 0};
}

std::string BodyText(const python::FunctionDef& run, std::string_view source) {
  return BodyText(run, SourceLines(source)).text;
}

}  // namespace caisson::workflow
