// SPDX-License-Identifier: Apache-2.0
#include "json/schema_words.h"

#include <utility>

#include "base/utf8.h"
#include "json/exact_number.h"
#include "json/schema_rules.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

constexpr std::size_t kMaxShown = 80;
constexpr std::size_t kMaxChoices = 12;

std::string Cut(std::string_view text) { return Shortened(text, kMaxShown); }

}  // namespace

std::string ShortJson(const Value& value) {
  if (value.is_string()) return Cut(Quote(value.as_string().substr(0, 4 * kMaxShown)));
  if (value.is_array() && value.as_array().size() > kMaxShown) return "a long array";
  if (value.is_object() && value.as_object().size() > kMaxShown) return "a large object";
  // Only as much as is shown is written.
  std::string text;
  const auto written = WritePieces(value, [&](std::string_view piece) {
    text += piece.substr(0, 2 * kMaxShown);
    return false;
  });
  if (!written) return "a value";
  return Cut(text);
}

std::string_view SchemaTypeName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return "boolean";
    case Value::Kind::kInt:
    case Value::Kind::kBigInt:
      return "integer";
    case Value::Kind::kDouble:
      return "number";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kArray:
      return "array";
    case Value::Kind::kObject:
      return "object";
  }
  return "value";
}

std::string TypeList(std::uint8_t bits) {
  static constexpr std::pair<std::uint8_t, std::string_view> kNames[] = {
      {kObjectBit, "object"}, {kArrayBit, "array"},     {kStringBit, "string"},
      {kNumberBit, "number"}, {kIntegerBit, "integer"}, {kBoolBit, "boolean"},
      {kNullBit, "null"}};
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames) {
    if ((bits & bit) != 0) names.push_back(name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string ChoiceList(const Array& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size() && i < kMaxChoices; ++i) {
    if (i > 0) text += ", ";
    text += ShortJson(choices[i]);
  }
  if (choices.size() > kMaxChoices) text += ", …";
  return text;
}

std::string Counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

}  // namespace caisson::json
