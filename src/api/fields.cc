// SPDX-License-Identifier: Apache-2.0
#include "api/fields.h"

#include <fmt/format.h>

#include "control/request_check.h"
#include "errors/api.h"
#include "json/reader.h"
#include "json/truth.h"

namespace caisson::api {
namespace {

constexpr std::size_t kMaxDepth = 32;

std::string_view NameOf(const json::Value& value) {
  using enum json::Value::Kind;
  switch (value.kind()) {
    case kNull:
      return "null";
    case kBool:
      return "a boolean";
    case kInt:
    case kBigInt:
      return "an integer";
    case kDouble:
      return "a number";
    case kString:
      return "a string";
    case kArray:
      return "a list";
    case kObject:
      return "an object";
  }
  return "something else";
}

}  // namespace

Result<Fields> Fields::Read(http::Exchange& exchange, std::size_t limit) {
  CAISSON_ASSIGN(std::string body, exchange.ReadBody(limit));
  if (body.find_first_not_of(" \t\r\n") == std::string::npos) return Fields(json::Object());
  auto value = json::Read(body, {.max_depth = kMaxDepth});
  if (!value) {
    return Fail(errors::kApiBody, "the body is not JSON: " + value.error().message);
  }
  if (value->is_null()) return Fields(json::Object());
  if (!value->is_object()) {
    return Fail(errors::kApiBody,
                fmt::format("the body must be a JSON object, not {}", NameOf(*value)));
  }
  Fields fields(*std::move(value));
  fields.bytes_ = std::move(body);
  return fields;
}

const json::Value* Fields::Find(std::string_view name) const {
  const json::Value* found = object_.Find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::unexpected<Status> Fields::Wrong(std::string_view name, std::string_view place,
                                      std::string_view wanted, const json::Value& found) const {
  return control::FailAt(
      path_ + std::string(name), errors::kApiField,
      fmt::format("$.{}{}{} must be {}, not {}", path_, name, place, wanted, NameOf(found)));
}

Result<std::optional<std::string>> Fields::Text(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) return Wrong(name, "", "a string", *found);
  return found->as_string();
}

Result<std::string> Fields::RequiredText(std::string_view name) const {
  CAISSON_ASSIGN(auto text, Text(name));
  if (text && !text->empty()) return *std::move(text);
  return control::FailAt(path_ + std::string(name), errors::kApiField,
                         fmt::format("$.{}{} is required", path_, name));
}

Result<std::optional<std::int64_t>> Fields::Integer(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_int()) return Wrong(name, "", "an integer of 64 bits", *found);
  return found->as_int();
}

Result<std::optional<double>> Fields::Number(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) return Wrong(name, "", "a number", *found);
  return found->ToDouble();
}

Result<std::optional<bool>> Fields::Boolean(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_bool()) return Wrong(name, "", "true or false", *found);
  return found->as_bool();
}

Result<std::optional<std::vector<std::string>>> Fields::TextList(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return Wrong(name, "", "a list of strings", *found);
  std::vector<std::string> texts;
  for (const json::Value& item : found->as_array()) {
    if (!item.is_string()) return Wrong(name, fmt::format("[{}]", texts.size()), "a string", item);
    texts.push_back(item.as_string());
  }
  return texts;
}

Result<std::optional<std::map<std::string, std::string>>> Fields::TextMap(
    std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) return Wrong(name, "", "an object of strings", *found);
  std::map<std::string, std::string> texts;
  for (const auto& [key, item] : found->as_object()) {
    if (!item.is_string()) return Wrong(name, "." + key.substr(0, 64), "a string", item);
    texts.emplace(key, item.as_string());
  }
  return texts;
}

Result<std::optional<Fields>> Fields::Object(std::string_view name) const {
  const json::Value* found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) return Wrong(name, "", "an object", *found);
  Fields inner(*found);
  inner.path_ = path_ + std::string(name) + ".";
  return inner;
}

Result<std::vector<Fields>> Fields::ObjectList(std::string_view name) const {
  std::vector<Fields> out;
  const json::Value* found = Find(name);
  if (found == nullptr) return out;
  if (!found->is_array()) return Wrong(name, "", "a list of objects", *found);
  for (const json::Value& item : found->as_array()) {
    if (!item.is_object()) return Wrong(name, fmt::format("[{}]", out.size()), "an object", item);
    Fields& inner = out.emplace_back(item);
    inner.path_ = fmt::format("{}{}[{}].", path_, name, out.size() - 1);
  }
  return out;
}

bool Fields::IsSet(std::string_view name) const {
  const json::Value* found = Find(name);
  return found != nullptr && json::Truth(*found);
}

}  // namespace caisson::api
