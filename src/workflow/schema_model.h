// SPDX-License-Identifier: Apache-2.0
// The shapes between a schema class and its JSON Schema: types as annotations give them, and what
// the options of a Field(...) turn them into. They follow the peer's model library step by step,
// because its output depends on the order in which it wraps types. Internal to schema*.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow::schema {

enum class TypeKind : std::uint8_t {
  kStr,
  kInt,
  kFloat,
  kBool,
  kAny,
  kNone,
  kList,      // parts: the item
  kDict,      // parts: key, value
  kLiteral,   // values
  kUnion,     // parts: members, None among them unless kNullable took it out
  kNullable,  // parts: the type that is not None
  kModel,     // model
  kAfter,     // parts: a type with a check after it, which shows in the schema as `shown`
  kChain,     // parts: a type with checks of its text after it, which do not show
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

struct Type {
  TypeKind kind = TypeKind::kAny;
  std::vector<TypePtr> parts;
  json::Array values;
  std::string_view model;
  json::Object options;  // options that the type takes itself: ge, min_length, pattern ...
  json::Object shown;    // kAfter
};

// Equal as Python's types are: unions and literals in any order.
bool SameType(const Type& a, const Type& b);
// `a | b | ...`: flattened, equal members once. At least one type.
TypePtr MakeUnion(const std::vector<TypePtr>& types);
// Literal[...] with equal values once.
TypePtr MakeLiteral(json::Array values);
// The name of the type in the library's messages ("int", "nullable", "function-after").
std::string_view TypeName(TypeKind kind);

// What `= Field(...)` or `= value` says of a field.
struct FieldInfo {
  std::optional<json::Value> default_value;
  json::Object options;  // keyword -> value of Field(...), in the order of the call
};

struct Field {
  std::string_view name;
  SourceSpan span;
  TypePtr type;
  FieldInfo info;
};

// A way in which the library refuses to build a model: `text` is what it says.
struct BuildError {
  enum class Phase : std::uint8_t { kNames, kTypes, kValidators, kSerializers } phase;
  std::string text;
  SourceSpan span;
};

// `field`'s type with the options of its Field(...) worked in, or the error that this gives.
std::optional<TypePtr> ApplyOptions(const Field& field, std::vector<BuildError>& errors);
// What the library checks of names, aliases and option values when it builds the model.
void CheckField(const Field& field, const Type& applied, std::vector<BuildError>& errors);

}  // namespace caisson::workflow::schema
