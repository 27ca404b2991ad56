// SPDX-License-Identifier: Apache-2.0
// How the options of a Field(...) change its type, and what the library refuses.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "workflow/schema_model.h"
#include "workflow/schema_pattern.h"

namespace caisson::workflow::schema {
namespace {

constexpr std::string_view kLengths[] = {"min_length", "max_length"};
constexpr std::string_view kInequalities[] = {"gt", "ge", "lt", "le", "multiple_of"};
// Options in the order in which the library works them in; those after kGeneral all at once.
constexpr std::string_view kOneByOne[] = {
    "strict",        "gt",       "ge", "lt", "le", "multiple_of", "min_length", "max_length",
    "allow_inf_nan", "fail_fast"};
constexpr std::string_view kGeneral[] = {"pattern", "coerce_numbers_to_str", "max_digits",
                                         "decimal_places", "union_mode"};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool Takes(TypeKind kind, std::string_view option) {
  switch (kind) {
    case TypeKind::kStr:
      return Contains(kLengths, option) || option == "strict" || option == "pattern" ||
             option == "coerce_numbers_to_str";
    case TypeKind::kInt:
      return Contains(kInequalities, option) || option == "strict";
    case TypeKind::kFloat:
      return Contains(kInequalities, option) || option == "strict" || option == "allow_inf_nan";
    case TypeKind::kBool:
    case TypeKind::kModel:
      return option == "strict";
    case TypeKind::kList:
    case TypeKind::kDict:
      return Contains(kLengths, option) || option == "strict" || option == "fail_fast";
    case TypeKind::kUnion:
      return option == "union_mode";
    default:
      return false;
  }
}

TypePtr Wrap(TypeKind kind, TypePtr inner, json::Object shown = {}) {
  return std::make_shared<const Type>(
      Type{.kind = kind, .parts = {std::move(inner)}, .shown = std::move(shown)});
}

TypePtr WithOption(const Type& type, std::string_view option, const json::Value& value) {
  auto copy = std::make_shared<Type>(type);
  copy->options.Set(option, value);
  return copy;
}

// The key under which a check that is not the type's own shows.
std::string_view ShownKey(const Type& type, std::string_view option) {
  if (!Contains(kLengths, option)) return option;
  const Type* inner = &type;
  while (inner->kind == TypeKind::kAfter) inner = inner->parts[0].get();
  if (inner->kind == TypeKind::kList) return option == "min_length" ? "minItems" : "maxItems";
  return option == "min_length" ? "minLength" : "maxLength";
}

using Options = std::vector<std::pair<std::string_view, const json::Value*>>;

// One group of options on one type. Nothing when the library cannot apply one of them.
class Application {
 public:
  explicit Application(std::vector<BuildError>& errors, SourceSpan span)
      : errors_(errors), span_(span) {}

  std::optional<TypePtr> Apply(const TypePtr& type, const Options& options) {
    if (type->kind == TypeKind::kNullable) {
      const auto inner = Apply(type->parts[0], options);
      return inner ? std::optional(Wrap(TypeKind::kNullable, *inner)) : std::nullopt;
    }
    TypePtr result = type;
    bool chained = false;
    for (const auto& [option, value] : options) {
      if (type->kind == TypeKind::kAfter && option == "strict") {
        const auto inner = Apply(type->parts[0], options);
        return inner ? std::optional(Wrap(TypeKind::kAfter, *inner, type->shown)) : std::nullopt;
      }
      if (Takes(type->kind, option)) {
        result = WithOption(*result, option, *value);
      } else if (option == "pattern" || option == "coerce_numbers_to_str") {
        chained = true;
      } else if (IsCheck(option)) {
        result = Wrap(TypeKind::kAfter, result, {{std::string(ShownKey(*result, option)), *value}});
      } else if (option == "allow_inf_nan" && value->is_bool() && !value->as_bool()) {
        result = Wrap(TypeKind::kAfter, result);
      } else {
        errors_.push_back({BuildError::Phase::kTypes,
                           "Unable to apply constraint '" + std::string(option) +
                               "' to schema of type '" + std::string(TypeName(type->kind)) + "'",
                           span_});
        return std::nullopt;
      }
    }
    return chained ? Wrap(TypeKind::kChain, result) : result;
  }

 private:
  static bool IsCheck(std::string_view option) {
    return Contains(kLengths, option) || Contains(kInequalities, option) ||
           option == "max_digits" || option == "decimal_places";
  }

  std::vector<BuildError>& errors_;
  SourceSpan span_;
};

// None out of a union, so that options go to what is beside it.
TypePtr SplitNullable(const TypePtr& type) {
  if (type->kind != TypeKind::kUnion) return type;
  std::vector<TypePtr> rest;
  for (const TypePtr& part : type->parts) {
    if (part->kind != TypeKind::kNone) rest.push_back(part);
  }
  if (rest.size() == type->parts.size()) return type;
  if (rest.size() == 1) return Wrap(TypeKind::kNullable, rest[0]);
  return Wrap(TypeKind::kNullable, std::make_shared<const Type>(
                                       Type{.kind = TypeKind::kUnion, .parts = std::move(rest)}));
}

std::string_view PythonType(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kNull:
      return "NoneType";
    case json::Value::Kind::kBool:
      return "bool";
    case json::Value::Kind::kInt:
    case json::Value::Kind::kBigInt:
      return "int";
    case json::Value::Kind::kDouble:
      return "float";
    case json::Value::Kind::kString:
      return "str";
    case json::Value::Kind::kArray:
      return "list";
    case json::Value::Kind::kObject:
      return "dict";
  }
  return "object";
}

std::string NotA(const json::Value& value, std::string_view type) {
  return "TypeError: '" + std::string(PythonType(value)) + "' object is not an instance of '" +
         std::string(type) + "'";
}

// What is wrong with the value of an option that `kind` takes itself; empty when nothing is.
std::string OptionError(TypeKind kind, std::string_view option, const json::Value& value) {
  if (option == "pattern") {
    if (!value.is_string()) return "SchemaError: Invalid pattern, must be str or re.Pattern";
    const std::string error = PatternError(value.as_string());
    return error.empty() ? "" : "SchemaError: regex parse error:\n" + error;
  }
  if (option == "union_mode") {
    if (!value.is_string()) return NotA(value, "str");
    if (value.as_string() == "smart" || value.as_string() == "left_to_right") return {};
    return "SchemaError: Invalid union mode: `" + value.as_string() +
           "`, expected `smart` or `left_to_right`";
  }
  if (Contains(kLengths, option)) {
    if (value.is_bool()) return {};
    if (!value.is_integer()) {
      return "TypeError: '" + std::string(PythonType(value)) +
             "' object cannot be interpreted as an integer";
    }
    if (value.ToDouble() < 0) return "OverflowError: can't convert negative int to unsigned";
    return value.ToDouble() >= 18446744073709551616.0 ? "OverflowError: int too big to convert"
                                                      : "";
  }
  if (!Contains(kInequalities, option)) return value.is_bool() ? "" : NotA(value, "bool");
  const bool is_number = value.is_number() || value.is_bool();
  const double number = value.is_bool()     ? (value.as_bool() ? 1 : 0)
                        : value.is_number() ? value.ToDouble()
                                            : 0;
  if (kind == TypeKind::kInt) {
    const bool whole = is_number && (!value.is_double() || number == std::trunc(number));
    if (!whole) return "ValueError: '" + std::string(option) + "' must be coercible to an integer";
  } else if (!is_number) {
    return "TypeError: must be real number, not " + std::string(PythonType(value));
  } else if (value.is_integer() && std::isinf(number)) {
    return "OverflowError: int too large to convert to float";
  }
  if (option == "multiple_of" && !(number > 0)) {
    return "ValueError: 'multiple_of' must be a finite number greater than 0";
  }
  return {};
}

// The library's account of the first wrong option, from the outermost type to the one that has it.
std::string ValidatorError(const Type& type) {
  std::string found;
  for (const auto& [option, value] : type.options) {
    if (found.empty()) found = OptionError(type.kind, option, value);
  }
  for (const TypePtr& part : type.parts) {
    if (!found.empty()) break;
    if (std::string inner = ValidatorError(*part); !inner.empty()) found = "SchemaError: " + inner;
  }
  if (found.empty()) return {};
  return "Error building \"" + std::string(TypeName(type.kind)) + "\" validator:\n  " + found;
}

class FieldChecker {
 public:
  FieldChecker(const Field& field, std::vector<BuildError>& errors)
      : field_(field), errors_(errors) {}

  void Check(const Type& applied) {
    CheckName();
    CheckDeprecated();
    CheckCallable("field_title_generator");
    CheckAlias("validation_alias");
    CheckAlias("alias");
    CheckBool("frozen",
              "Error building \"model\" validator:\n  SchemaError: Error building "
              "\"model-fields\" validator:\n  ",
              BuildError::Phase::kValidators);
    CheckValidators(applied);
    constexpr std::string_view kSerializer =
        "Error building `model` serializer:\n  SchemaError: Error building `model-fields` "
        "serializer:\n  ";
    CheckBool("exclude", kSerializer, BuildError::Phase::kSerializers);
    const json::Value* alias = Option("serialization_alias");
    if (alias != nullptr && !alias->is_string()) {
      Report(BuildError::Phase::kSerializers, std::string(kSerializer) + NotA(*alias, "str"));
    }
  }

 private:
  // The value of an option that is given and not None.
  const json::Value* Option(std::string_view name) const {
    const json::Value* value = field_.info.options.Find(name);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }
  void Report(BuildError::Phase phase, std::string text) {
    errors_.push_back({phase, std::move(text), field_.span});
  }

  void CheckName() {
    static constexpr std::string_view kProtected[] = {"model_dump", "model_dump_json",
                                                      "model_validate", "model_validate_json",
                                                      "model_validate_strings"};
    if (field_.name == "model_config") {
      return Report(BuildError::Phase::kNames,
                    "'model_config' cannot be a field: it configures the model");
    }
    if (!Contains(kProtected, field_.name)) return;
    const std::string_view space =
        field_.name.starts_with("model_dump") ? "model_dump" : "model_validate";
    Report(BuildError::Phase::kNames, "Field '" + std::string(field_.name) +
                                          "' conflicts with a member of protected namespace '" +
                                          std::string(space) + "'.");
  }

  void CheckDeprecated() {
    const json::Value* deprecated = Option("deprecated");
    if (deprecated == nullptr || deprecated->is_bool() || deprecated->is_string()) return;
    Report(BuildError::Phase::kNames,
           "'" + std::string(PythonType(*deprecated)) + "' object has no attribute 'message'");
  }

  void CheckCallable(std::string_view option) {
    const json::Value* value = Option(option);
    if (value == nullptr) return;
    Report(BuildError::Phase::kTypes,
           "'" + std::string(PythonType(*value)) + "' object is not callable");
  }

  void CheckAlias(std::string_view option) {
    const json::Value* alias = Option(option);
    if (alias == nullptr || alias->is_string()) return;
    Report(BuildError::Phase::kValidators,
           "an alias must be a string, not " + std::string(PythonType(*alias)));
  }

  void CheckBool(std::string_view option, std::string_view context, BuildError::Phase phase) {
    const json::Value* value = Option(option);
    if (value == nullptr || value->is_bool()) return;
    Report(phase, std::string(context) + NotA(*value, "bool"));
  }

  void CheckValidators(const Type& applied) {
    std::string error = ValidatorError(applied);
    const bool has_default = field_.info.default_value.has_value();
    if (has_default) {
      const json::Value* validate = Option("validate_default");
      if (validate != nullptr && !validate->is_bool())
        error = NotA(*validate, "bool");
      else if (!error.empty())
        error = "SchemaError: " + error;
      if (!error.empty()) error = "Error building \"default\" validator:\n  " + error;
    }
    if (error.empty()) return;
    Report(BuildError::Phase::kValidators,
           "Error building \"model\" validator:\n  SchemaError: Error building \"model-fields\" "
           "validator:\n  SchemaError: Field \"" +
               std::string(field_.name) + "\":\n  SchemaError: " + error);
  }

  const Field& field_;
  std::vector<BuildError>& errors_;
};

// Literal[()] anywhere in the type.
bool HasEmptyLiteral(const Type& type) {
  if (type.kind == TypeKind::kLiteral && type.values.empty()) return true;
  return std::ranges::any_of(type.parts,
                             [](const TypePtr& part) { return HasEmptyLiteral(*part); });
}

}  // namespace

std::optional<TypePtr> ApplyOptions(const Field& field, std::vector<BuildError>& errors) {
  if (HasEmptyLiteral(*field.type)) {
    errors.push_back({BuildError::Phase::kTypes,
                      "literal \"expected\" cannot be empty, obj=typing.Literal[()]", field.span});
    return std::nullopt;
  }
  if (field.info.options.Find("discriminator") != nullptr &&
      !field.info.options.Find("discriminator")->is_null()) {
    errors.push_back({BuildError::Phase::kTypes,
                      "the option 'discriminator' cannot be lowered to JSON Schema", field.span});
    return std::nullopt;
  }
  Application application(errors, field.span);
  std::optional<TypePtr> type = SplitNullable(field.type);
  for (std::string_view option : kOneByOne) {
    const json::Value* value = field.info.options.Find(option);
    if (value == nullptr || value->is_null()) continue;
    type = application.Apply(*type, {{option, value}});
    if (!type) return std::nullopt;
  }
  Options general;
  for (std::string_view option : kGeneral) {
    const json::Value* value = field.info.options.Find(option);
    if (value != nullptr && !value->is_null()) general.emplace_back(option, value);
  }
  return general.empty() ? type : application.Apply(*type, general);
}

void CheckField(const Field& field, const Type& applied, std::vector<BuildError>& errors) {
  FieldChecker(field, errors).Check(applied);
}

}  // namespace caisson::workflow::schema
