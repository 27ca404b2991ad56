// SPDX-License-Identifier: Apache-2.0
#include "workflow/diagnostic.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/error_catalogue.h"
#include "base/utf8.h"
#include "json/writer.h"
#include "workflow/diagnostic_format.h"

namespace caisson::workflow {
namespace internal {
namespace {

json::Value Optional(std::uint32_t number) {
  return number == 0 ? json::Value() : json::Value(number);
}

std::string_view LevelName(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

json::Value DiagnosticJson(const Diagnostic& diagnostic, Regions& regions) {
  const Region region = regions.Of(diagnostic.span);
  return json::Object{{"code", diagnostic.code.name},
                      {"severity", LevelName(diagnostic.severity)},
                      {"message", ValidUtf8(diagnostic.message)},
                      {"hint", ValidUtf8(diagnostic.hint)},
                      {"path", ValidUtf8(diagnostic.path)},
                      {"line", Optional(region.line)},
                      {"column", Optional(region.column)},
                      {"end_line", Optional(region.end_line)},
                      {"end_column", Optional(region.end_column)},
                      {"peer_line", Optional(diagnostic.peer_line)}};
}

// A relative reference or file path as the URI that SARIF wants.
std::string FileUri(std::string_view file) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/";
  std::string uri = file.starts_with('/') ? "file://" : "";
  for (const char c : file) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      ((uri += '%') += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  return uri;
}

json::Value SarifLocation(const Diagnostic& diagnostic, const std::string& uri, Regions& regions) {
  json::Object physical{{"artifactLocation", json::Object{{"uri", uri}}}};
  const Region region = regions.Of(diagnostic.span);
  if (region.line != 0) {
    physical.Set("region", json::Object{{"startLine", region.line},
                                        {"startColumn", region.column},
                                        {"endLine", region.end_line},
                                        {"endColumn", region.end_column}});
  }
  json::Object location{{"physicalLocation", std::move(physical)}};
  if (!diagnostic.path.empty()) {
    location.Set("logicalLocations",
                 json::Array{json::Object{{"fullyQualifiedName", ValidUtf8(diagnostic.path)}}});
  }
  return location;
}

std::string SarifMessage(const Diagnostic& diagnostic) {
  std::string text = ValidUtf8(diagnostic.message);
  if (!diagnostic.hint.empty()) text += "\n" + ValidUtf8(diagnostic.hint);
  return text;
}

std::string Written(const json::Value& document) {
  // Every string in it has been made valid, so that writing cannot fail.
  return json::Write(document, {.indent = 2}).value_or("") + "\n";
}

}  // namespace

std::string_view Regions::LineText(std::uint32_t line) const {
  const std::string_view rest = lines_.source().substr(lines_.Offset(line, 0));
  return rest.substr(0, rest.find_first_of("\r\n"));
}

std::uint32_t Regions::ColumnOf(std::uint32_t line, std::uint32_t byte_column) {
  if (line != line_ || byte_column < bytes_) {
    line_ = line;
    bytes_ = 0;
    code_points_ = 0;
  }
  const std::size_t start = lines_.Offset(line, 0);
  const std::size_t end = lines_.Offset(line, byte_column);
  for (std::size_t at = start + bytes_; at < end; ++at) {
    code_points_ += (lines_.source()[at] & 0xC0) != 0x80;
  }
  bytes_ = std::max(bytes_, end - start);
  return code_points_ + 1;
}

Region Regions::Of(const SourceSpan& span) {
  if (!span.known()) return {};
  const std::uint32_t column = ColumnOf(span.line, span.column);
  if (span.end_line < span.line) return {span.line, column, span.line, column};
  return {span.line, column, span.end_line, ColumnOf(span.end_line, span.end_column)};
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    out += length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string RenderJson(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                       Regions& regions) {
  json::Array items;
  std::int64_t errors = 0;
  items.reserve(diagnostics.size());
  for (const Diagnostic& each : diagnostics) {
    errors += each.severity == Severity::kError;
    items.push_back(DiagnosticJson(each, regions));
  }
  const auto warnings = static_cast<std::int64_t>(diagnostics.size()) - errors;
  return Written(json::Object{{"file", ValidUtf8(file)},
                              {"errors", errors},
                              {"warnings", warnings},
                              {"diagnostics", std::move(items)}});
}

std::string RenderSarif(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                        Regions& regions) {
  json::Array rules, results;
  std::unordered_map<std::string_view, std::int64_t> rule_index;
  const std::string uri = FileUri(file);
  for (const Diagnostic& each : diagnostics) {
    const auto [rule, is_new] =
        rule_index.try_emplace(each.code.name, static_cast<std::int64_t>(rules.size()));
    if (is_new) {
      rules.emplace_back(
          json::Object{{"id", each.code.name},
                       {"shortDescription", json::Object{{"text", FindError(each.code).text}}}});
    }
    results.emplace_back(
        json::Object{{"ruleId", each.code.name},
                     {"ruleIndex", rule->second},
                     {"level", LevelName(each.severity)},
                     {"message", json::Object{{"text", SarifMessage(each)}}},
                     {"locations", json::Array{SarifLocation(each, uri, regions)}}});
  }
  const json::Object driver{{"name", "caisson"}, {"rules", std::move(rules)}};
  json::Array runs{json::Object{{"tool", json::Object{{"driver", driver}}},
                                {"columnKind", "unicodeCodePoints"},
                                {"results", std::move(results)}}};
  return Written(json::Object{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                              {"version", "2.1.0"},
                              {"runs", std::move(runs)}});
}

}  // namespace internal

std::string Render(const std::vector<Diagnostic>& diagnostics, std::string_view file,
                   std::string_view source, DiagnosticFormat format, bool color) {
  const SourceLines lines(source);
  internal::Regions regions(lines);
  switch (format) {
    case DiagnosticFormat::kJson:
      return internal::RenderJson(diagnostics, file, regions);
    case DiagnosticFormat::kSarif:
      return internal::RenderSarif(diagnostics, file, regions);
    case DiagnosticFormat::kText:
      break;
  }
  return internal::RenderText(diagnostics, file, regions, color);
}

}  // namespace caisson::workflow
