// SPDX-License-Identifier: Apache-2.0
// JsonProcessingNode.
#include "json/reader.h"
#include "nodes/families.h"
#include "nodes/path.h"
#include "nodes/python_json.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kOperations[] = {"parse", "stringify", "extract"};
enum : std::size_t { kOperation, kInputData, kPath, kDefault, kIndent, kEnsureAscii };
constexpr Field kJsonProcessingFields[] = {
    {.name = "operation",
     .kind = FieldKind::kChoice,
     .default_json = "\"parse\"",
     .choices = kOperations},
    {.name = "input_data", .required = true},
    {.name = "path", .kind = FieldKind::kString, .nullable = true},
    {.name = "default"},
    {.name = "indent", .kind = FieldKind::kInt, .nullable = true, .default_json = "2"},
    {.name = "ensure_ascii", .kind = FieldKind::kBool, .default_json = "false"},
};

// Text is decoded, everything else is taken as it is.
Result<json::Value> Decoded(const json::Value& input) {
  if (!input.is_string()) return input;
  auto value = json::Read(input.as_string());
  if (!value) return NodeFailed("input_data is not valid JSON: " + value.error().message);
  return *std::move(value);
}

Result<json::Value> Extract(const Visit& visit) {
  const json::Value& path = visit.fields[kPath];
  if (path.is_null()) return NodeFailed("path is required when operation is 'extract'");
  CAISSON_ASSIGN(const json::Value data, Decoded(visit.fields[kInputData]));
  if (!path.is_string()) {
    return NodeFailed("path must be a string, not " + std::string(PyType(path)) +
                      "; its template yielded a value of that type");
  }
  CAISSON_ASSIGN(const auto segments,
                 SplitPath(path.as_string(), "Path must contain at least one segment"));
  CAISSON_ASSIGN(const json::Value* found, Walk(data, segments, ListIndex::kDigits));
  return json::Object{{"result", found != nullptr ? *found : visit.fields[kDefault]},
                      {"found", found != nullptr}};
}

Result<json::Value> RunJsonProcessing(const Visit& visit) {
  const std::string& operation = visit.fields[kOperation].as_string();
  if (operation == "extract") return Extract(visit);
  if (operation == "parse") {
    CAISSON_ASSIGN(json::Value result, Decoded(visit.fields[kInputData]));
    return json::Object{{"result", std::move(result)}};
  }
  std::optional<std::int64_t> indent;
  const json::Value& width = visit.fields[kIndent];
  if (width.is_int()) indent = width.as_int();
  if (width.is_integer() && !width.is_int()) return NodeFailed("indent is out of range");
  CAISSON_ASSIGN(std::string text, PyJsonDumps(visit.fields[kInputData], indent,
                                               visit.fields[kEnsureAscii].as_bool()));
  return json::Object{{"result", std::move(text)}};
}

}  // namespace

extern constexpr NodeType kJsonProcessingNode{"JsonProcessingNode", kJsonProcessingFields,
                                              RunJsonProcessing};

}  // namespace caisson::nodes
