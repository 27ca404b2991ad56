// SPDX-License-Identifier: Apache-2.0
// DataTransformNode.
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/path.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kWhenMissing[] = {"default", "skip"};
constexpr std::string_view kConversions[] = {"identity", "string", "int",   "float", "bool",
                                             "lower",    "upper",  "title", "length"};
constexpr Field kTransformFields[] = {
    {.name = "source", .kind = FieldKind::kString, .nullable = true},
    {.name = "target", .kind = FieldKind::kString, .required = true},
    {.name = "default"},
    {.name = "when_missing",
     .kind = FieldKind::kChoice,
     .default_json = "\"default\"",
     .choices = kWhenMissing},
    {.name = "transform",
     .kind = FieldKind::kChoice,
     .default_json = "\"identity\"",
     .choices = kConversions},
};

// Puts each transform into its normal form: an object of the five fields, in their order.
Result<json::Value> CheckTransforms(const json::Value& value, std::string_view path) {
  json::Array transforms;
  std::size_t index = 0;
  for (const json::Value& item : value.as_array()) {
    const std::string where = std::string(path) + "[" + std::to_string(index++) + "]";
    CAISSON_ASSIGN(const json::Array fields,
                   ValidateFields(kTransformFields, item.as_object(), where));
    json::Object transform;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      transform.Set(kTransformFields[i].name, fields[i]);
    }
    transforms.emplace_back(std::move(transform));
  }
  return json::Value(std::move(transforms));
}

enum : std::size_t { kInputData, kTransforms };
constexpr Field kDataTransformFields[] = {
    {.name = "input_data", .default_json = "{}"},
    {.name = "transforms",
     .kind = FieldKind::kObjectList,
     .default_json = "[]",
     .check = CheckTransforms},
};

json::Value LengthOf(const json::Value& value) {
  if (value.is_string()) return static_cast<std::uint64_t>(CharacterCount(value.as_string()));
  if (value.is_array()) return static_cast<std::uint64_t>(value.as_array().size());
  if (value.is_object()) return static_cast<std::uint64_t>(value.as_object().size());
  return 0;
}

Result<json::Value> Convert(const json::Value& value, std::string_view conversion) {
  const bool null = value.is_null();
  if (conversion == "string") return json::Value(null ? "" : PyStr(value));
  if (conversion == "int") return null ? json::Value(0) : PyInt(value);
  if (conversion == "float") {
    if (null) return json::Value(0.0);
    CAISSON_ASSIGN(const double number, PyFloat(value));
    return json::Value(number);
  }
  if (conversion == "bool") return json::Value(json::Truth(value));
  if (conversion == "length") return LengthOf(value);
  if (!value.is_string()) return value;
  if (conversion == "lower") return json::Value(Lower(value.as_string()));
  if (conversion == "upper") return json::Value(Upper(value.as_string()));
  if (conversion == "title") return json::Value(Title(value.as_string()));
  return value;
}

// The segments of transform[member], which a template may have made no string.
Result<std::vector<std::string>> PathOf(const json::Value& transform, std::string_view member) {
  const json::Value& path = *transform.Find(member);
  if (!path.is_string()) {
    return NodeFailed("a transform's " + std::string(member) + " must be a string, not " +
                      std::string(PyType(path)) + "; its template yielded a value of that type");
  }
  return SplitPath(path.as_string(), "Path must contain at least one segment");
}

Result<void> Apply(const json::Value& transform, const json::Value& input, json::Object& output) {
  json::Value value = *transform.Find("default");
  if (!transform.Find("source")->is_null()) {
    CAISSON_ASSIGN(const auto source, PathOf(transform, "source"));
    CAISSON_ASSIGN(const json::Value* found, Walk(input, source, ListIndex::kDigits));
    if (found == nullptr && transform.Find("when_missing")->as_string() == "skip") return {};
    if (found != nullptr) value = *found;
  }
  CAISSON_ASSIGN(value, Convert(value, transform.Find("transform")->as_string()));
  CAISSON_ASSIGN(const auto target, PathOf(transform, "target"));
  Assign(output, target, std::move(value));
  return {};
}

Result<json::Value> RunDataTransform(const Visit& visit) {
  json::Object output;
  for (const json::Value& transform : visit.fields[kTransforms].as_array()) {
    CAISSON_TRY(Apply(transform, visit.fields[kInputData], output));
  }
  return json::Object{{"result", std::move(output)}};
}

}  // namespace

extern constexpr NodeType kDataTransformNode{"DataTransformNode", kDataTransformFields,
                                             RunDataTransform};

}  // namespace caisson::nodes
