// SPDX-License-Identifier: Apache-2.0
// The conversions that configuration fields accept are those of the peer's models in lax mode.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/utf8.h"
#include "errors/nodes.h"
#include "json/reader.h"
#include "nodes/node.h"
#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kShownText = 80;

// `value` for a message, cut when it is long.
std::string Show(const json::Value& value) {
  if (value.is_array() || value.is_object()) return std::string(PyType(value));
  std::string text = PyRepr(value);
  if (text.size() > kShownText) text = text.substr(0, kShownText) + "...";
  return text;
}

std::unexpected<Status> Wrong(std::string_view path, std::string_view expected,
                              const json::Value& value) {
  return Fail(errors::kNodesConfig,
              std::string(path) + ": must be " + std::string(expected) + ", not " + Show(value));
}

Result<json::Value> ToBool(const json::Value& value, std::string_view path) {
  if (value.is_bool()) return value;
  if (value.is_number() && value.ToDouble() == 0) return json::Value(false);
  if (value.is_number() && value.ToDouble() == 1) return json::Value(true);
  if (value.is_string()) {
    static constexpr std::string_view kTrue[] = {"1", "on", "t", "true", "y", "yes"};
    static constexpr std::string_view kFalse[] = {"0", "off", "f", "false", "n", "no"};
    const std::string text = Lower(value.as_string());
    if (std::ranges::find(kTrue, text) != std::end(kTrue)) return json::Value(true);
    if (std::ranges::find(kFalse, text) != std::end(kFalse)) return json::Value(false);
  }
  return Wrong(path, "true or false", value);
}

Result<json::Value> TextToInt(const json::Value& value, std::string_view path) {
  std::string_view text = Strip(value.as_string());
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos && point + 1 < text.size() &&
      text.find_first_not_of('0', point + 1) == std::string_view::npos) {
    text = text.substr(0, point);
  }
  const auto digits = IsAscii(text) ? ParseInt(text) : std::nullopt;
  if (!digits || digits->size() > 4300 || Strip(text) != text) {
    return Wrong(path, "an integer", value);
  }
  return json::Value::Integer(*digits);
}

Result<json::Value> ToInt(const json::Value& value, std::string_view path) {
  if (value.is_integer()) return value;
  if (value.is_bool()) return json::Value(value.as_bool() ? 1 : 0);
  if (value.is_string()) return TextToInt(value, path);
  constexpr double kBeyondInt64 = 9223372036854775808.0;
  if (value.is_double() && std::trunc(value.as_double()) == value.as_double() &&
      std::abs(value.as_double()) < kBeyondInt64) {
    return json::Value(static_cast<std::int64_t>(value.as_double()));
  }
  return Wrong(path, "an integer", value);
}

Result<json::Value> ToFloat(const json::Value& value, std::string_view path) {
  if (value.is_bool()) return json::Value(value.as_bool() ? 1.0 : 0.0);
  if (value.is_number()) {
    const double number = value.ToDouble();
    if (value.is_integer() && std::isinf(number)) return Wrong(path, "a number", value);
    return json::Value(number);
  }
  if (value.is_string() && IsAscii(value.as_string())) {
    if (const auto number = ParseFloat(value.as_string())) return json::Value(*number);
  }
  return Wrong(path, "a number", value);
}

std::string ChoicesText(const Field& field) {
  std::string text = "one of ";
  for (std::size_t i = 0; i < field.choices.size(); ++i) {
    if (i > 0) text += i + 1 == field.choices.size() ? " or " : ", ";
    text += "'" + std::string(field.choices[i]) + "'";
  }
  return text;
}

bool IsChoice(const Field& field, const json::Value& value) {
  return value.is_string() &&
         std::ranges::find(field.choices, value.as_string()) != field.choices.end();
}

// `value` when it is a list whose items all `fit`.
template <typename Fits>
Result<json::Value> ListOf(const json::Value& value, std::string_view path,
                           std::string_view item_text, Fits fits) {
  if (!value.is_array()) return Wrong(path, "a list", value);
  std::size_t index = 0;
  for (const json::Value& item : value.as_array()) {
    const std::size_t position = index++;
    if (fits(item)) continue;
    return Wrong(std::string(path) + "[" + std::to_string(position) + "]", item_text, item);
  }
  return value;
}

Result<json::Value> ToStringMap(const json::Value& value, std::string_view path) {
  if (!value.is_object()) return Wrong(path, "an object", value);
  for (const auto& [key, member] : value.as_object()) {
    if (!member.is_string()) return Wrong(std::string(path) + "." + key, "a string", member);
  }
  return value;
}

Result<json::Value> Convert(const Field& field, const json::Value& value, std::string_view path) {
  switch (field.kind) {
    case FieldKind::kAny:
      return value;
    case FieldKind::kString:
    case FieldKind::kTemplate:
      return value.is_string() ? Result<json::Value>(value) : Wrong(path, "a string", value);
    case FieldKind::kBool:
      return ToBool(value, path);
    case FieldKind::kInt:
      return ToInt(value, path);
    case FieldKind::kFloat:
      return ToFloat(value, path);
    case FieldKind::kList:
      return ListOf(value, path, "", [](const json::Value&) { return true; });
    case FieldKind::kListOrString:
      if (value.is_string() || value.is_array()) return value;
      return Wrong(path, "a list or a string", value);
    case FieldKind::kIntOrString:
      return value.is_string() ? Result<json::Value>(value) : ToInt(value, path);
    case FieldKind::kStringMap:
      return ToStringMap(value, path);
    case FieldKind::kStringList:
    case FieldKind::kTemplateList:
      return ListOf(value, path, "a string", [](const json::Value& v) { return v.is_string(); });
    case FieldKind::kObject:
      return value.is_object() ? Result<json::Value>(value) : Wrong(path, "an object", value);
    case FieldKind::kObjectList:
    case FieldKind::kSteps:
    case FieldKind::kTools:
      return ListOf(value, path, "an object", [](const json::Value& v) { return v.is_object(); });
    case FieldKind::kChoice:
      return IsChoice(field, value) ? Result<json::Value>(value)
                                    : Wrong(path, ChoicesText(field), value);
    case FieldKind::kChoiceList:
      return ListOf(value, path, ChoicesText(field),
                    [&](const json::Value& v) { return IsChoice(field, v); });
  }
  return Wrong(path, "of a known kind", value);
}

Result<json::Value> CheckedField(const Field& field, const json::Value& value,
                                 std::string_view path) {
  if (field.nullable && value.is_null()) return value;
  CAISSON_ASSIGN(json::Value converted, Convert(field, value, path));
  // Written so that a NaN fails.
  if (converted.is_number() && field.minimum > -std::numeric_limits<double>::infinity() &&
      !(converted.ToDouble() >= field.minimum)) {
    return Wrong(path, "at least " + PyRepr(json::Value(field.minimum)), converted);
  }
  return field.check != nullptr ? field.check(converted, path)
                                : Result<json::Value>(std::move(converted));
}

Result<json::Value> FieldValue(const Field& field, const json::Object& config,
                               std::string_view path) {
  const std::string where = std::string(path) + "." + std::string(field.name);
  if (const json::Value* value = config.Find(field.name)) return CheckedField(field, *value, where);
  if (field.required) return Fail(errors::kNodesConfig, where + ": is required");
  return json::Read(field.default_json);
}

}  // namespace

Result<json::Array> ValidateFields(std::span<const Field> fields, const json::Object& config,
                                   std::string_view path) {
  json::Array values;
  values.reserve(fields.size());
  std::string faults;
  for (const Field& field : fields) {
    auto value = FieldValue(field, config, path);
    if (value) {
      values.push_back(*std::move(value));
      continue;
    }
    if (!faults.empty()) faults += "; ";
    faults += value.error().message;
  }
  if (!faults.empty()) return Fail(errors::kNodesConfig, std::move(faults));
  return values;
}

Result<json::Array> ValidateConfig(const NodeType& type, const json::Object& config,
                                   std::string_view path) {
  CAISSON_ASSIGN(json::Array values, ValidateFields(type.fields, config, path));
  if (type.check != nullptr) CAISSON_TRY(type.check(values));
  return values;
}

Result<json::Array> ValidateAgain(std::span<const Field> fields, const Visit& visit) {
  json::Object config;
  for (std::size_t i = 0; i < fields.size(); ++i) config.Set(fields[i].name, visit.fields[i]);
  auto values = ValidateFields(fields, config, visit.name);
  if (!values) return NodeFailed(std::move(values.error().message));
  return values;
}

}  // namespace caisson::nodes
