// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <unordered_set>

#include "json/writer.h"
#include "workflow/schema_model.h"

namespace caisson::workflow::schema {
namespace {

// A text that two literals share exactly when they are equal.
std::string LiteralKey(const json::Value& value) {
  if (value.is_double() && value.as_double() == 0) return "0.0";  // -0.0 as well
  return json::WriteCanonical(value).value_or("");
}

// A list or dict among them makes Python give up comparing.
bool IsHashable(const json::Value& value) { return !value.is_array() && !value.is_object(); }

bool Holds(const std::vector<TypePtr>& types, const Type& type) {
  return std::ranges::any_of(types, [&](const TypePtr& each) { return SameType(*each, type); });
}

void AddMembers(const TypePtr& type, std::vector<TypePtr>& members) {
  if (type->kind == TypeKind::kUnion) {
    for (const TypePtr& part : type->parts) AddMembers(part, members);
  } else if (!Holds(members, *type)) {
    members.push_back(type);
  }
}

bool SameParts(const std::vector<TypePtr>& a, const std::vector<TypePtr>& b) {
  return std::ranges::equal(a, b,
                            [](const TypePtr& x, const TypePtr& y) { return SameType(*x, *y); });
}

bool SameLiterals(const json::Array& a, const json::Array& b) {
  if (a.size() != b.size()) return false;
  std::unordered_set<std::string> keys;
  for (const json::Value& value : b) keys.insert(LiteralKey(value));
  return std::ranges::all_of(
      a, [&](const json::Value& value) { return keys.contains(LiteralKey(value)); });
}

}  // namespace

bool SameType(const Type& a, const Type& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.model != b.model) return false;
  if (a.kind == TypeKind::kLiteral) return SameLiterals(a.values, b.values);
  if (a.kind != TypeKind::kUnion) return SameParts(a.parts, b.parts);
  return a.parts.size() == b.parts.size() &&
         std::ranges::all_of(a.parts, [&](const TypePtr& part) { return Holds(b.parts, *part); });
}

TypePtr MakeUnion(const std::vector<TypePtr>& types) {
  std::vector<TypePtr> members;
  for (const TypePtr& type : types) AddMembers(type, members);
  if (members.size() == 1) return members.front();
  return std::make_shared<const Type>(Type{.kind = TypeKind::kUnion, .parts = std::move(members)});
}

TypePtr MakeLiteral(json::Array values) {
  if (std::ranges::all_of(values, IsHashable)) {
    std::unordered_set<std::string> seen;
    json::Array unique;
    for (json::Value& value : values) {
      if (seen.insert(LiteralKey(value)).second) unique.push_back(std::move(value));
    }
    values = std::move(unique);
  }
  return std::make_shared<const Type>(
      Type{.kind = TypeKind::kLiteral, .values = std::move(values)});
}

std::string_view TypeName(TypeKind kind) {
  static constexpr std::string_view kNames[] = {
      "str",  "int",     "float", "bool",     "any",   "none",           "list",
      "dict", "literal", "union", "nullable", "model", "function-after", "chain"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace caisson::workflow::schema
