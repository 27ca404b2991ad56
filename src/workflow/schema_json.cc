// SPDX-License-Identifier: Apache-2.0
// Types to JSON Schema, keys in the order in which the library makes them; it sorts them at the end
// (schema.cc).
#include <algorithm>
#include <clocale>
#include <cwctype>

#include "json/truth.h"
#include "workflow/schema_json.h"
#include "workflow/schema_model.h"

namespace caisson::workflow::schema {
namespace {

// Python counts True as 1 and 1.0 as 1 when it looks for equal schemas.
bool LooselyEqual(const json::Value& a, const json::Value& b) {
  const auto is_number = [](const json::Value& v) { return v.is_number() || v.is_bool(); };
  if (is_number(a) && is_number(b)) {
    if (a.is_integer() && b.is_integer()) return a == b;
    const auto number = [](const json::Value& v) {
      return v.is_bool() ? (v.as_bool() ? 1.0 : 0.0) : v.ToDouble();
    };
    return number(a) == number(b);
  }
  if (a.is_array() && b.is_array()) {
    return std::ranges::equal(a.as_array(), b.as_array(), LooselyEqual);
  }
  if (!a.is_object() || !b.is_object()) return a == b;
  return a.as_object().size() == b.as_object().size() &&
         std::ranges::all_of(a.as_object(), [&](const json::Object::Member& member) {
           const json::Value* other = b.Find(member.first);
           return other != nullptr && LooselyEqual(member.second, *other);
         });
}

// {"anyOf": ...} of the schemas: nested ones flattened, of equal ones the last in the first's
// place.
json::Object AnyOf(const std::vector<json::Object>& schemas) {
  json::Array members;
  const auto add = [&members](const json::Value& schema) {
    const auto same = std::ranges::find_if(
        members, [&](const json::Value& each) { return LooselyEqual(each, schema); });
    if (same != members.end()) {
      *same = schema;
    } else {
      members.push_back(schema);
    }
  };
  for (const json::Object& schema : schemas) {
    const json::Value* nested = schema.Find("anyOf");
    if (schema.size() == 1 && nested != nullptr && nested->is_array()) {
      for (const json::Value& member : nested->as_array()) add(member);
    } else {
      add(schema);
    }
  }
  if (members.size() == 1) return members[0].as_object();
  return {{"anyOf", std::move(members)}};
}

struct OptionKey {
  std::string_view option;
  std::string_view key;
};
constexpr OptionKey kNumberKeys[] = {{"multiple_of", "multipleOf"},
                                     {"le", "maximum"},
                                     {"ge", "minimum"},
                                     {"lt", "exclusiveMaximum"},
                                     {"gt", "exclusiveMinimum"}};
constexpr OptionKey kStringKeys[] = {
    {"min_length", "minLength"}, {"max_length", "maxLength"}, {"pattern", "pattern"}};
constexpr OptionKey kArrayKeys[] = {{"min_length", "minItems"}, {"max_length", "maxItems"}};
constexpr OptionKey kObjectKeys[] = {{"min_length", "minProperties"},
                                     {"max_length", "maxProperties"}};

template <std::size_t N>
void AddOptions(const Type& type, const OptionKey (&keys)[N], json::Object& schema) {
  for (const OptionKey& each : keys) {
    if (const json::Value* value = type.options.Find(each.option)) schema.Set(each.key, *value);
  }
}

json::Object SchemaOf(const Type& type);

json::Object LiteralSchema(const json::Array& values) {
  json::Object schema;
  if (values.size() == 1) {
    schema.Set("const", values[0]);
  } else {
    schema.Set("enum", values);
  }
  const auto all = [&values](auto is) { return std::ranges::all_of(values, is); };
  if (all([](const json::Value& v) { return v.is_string(); })) schema.Set("type", "string");
  if (all([](const json::Value& v) { return v.is_integer(); })) schema.Set("type", "integer");
  if (all([](const json::Value& v) { return v.is_double(); })) schema.Set("type", "number");
  if (all([](const json::Value& v) { return v.is_bool(); })) schema.Set("type", "boolean");
  if (all([](const json::Value& v) { return v.is_array(); })) schema.Set("type", "array");
  if (all([](const json::Value& v) { return v.is_null(); })) schema.Set("type", "null");
  return schema;
}

json::Object DictSchema(const Type& type) {
  json::Object schema{{"type", "object"}};
  json::Object values = SchemaOf(*type.parts[1]);
  schema.Set("additionalProperties", values.empty() ? json::Value(true) : json::Value(values));
  json::Object keys = SchemaOf(*type.parts[0]);
  const json::Value* key_type = keys.Find("type");
  const bool is_string = key_type != nullptr && *key_type == json::Value("string");
  if ((is_string && keys.size() > 1) || keys.Contains("$ref")) {
    keys.Erase("type");
    schema.Set("propertyNames", std::move(keys));
  }
  AddOptions(type, kObjectKeys, schema);
  return schema;
}

json::Object UnionSchema(const Type& type) {
  std::vector<json::Object> members;
  bool nullable = false;
  for (const TypePtr& part : type.parts) {
    if (part->kind == TypeKind::kNone) {
      nullable = true;
    } else {
      members.push_back(SchemaOf(*part));
    }
  }
  json::Object schema = AnyOf(members);
  return nullable ? AnyOf({std::move(schema), {{"type", "null"}}}) : schema;
}

json::Object SchemaOf(const Type& type) {
  json::Object schema;
  switch (type.kind) {
    case TypeKind::kStr:
      schema.Set("type", "string");
      AddOptions(type, kStringKeys, schema);
      return schema;
    case TypeKind::kInt:
    case TypeKind::kFloat:
      schema.Set("type", type.kind == TypeKind::kInt ? "integer" : "number");
      AddOptions(type, kNumberKeys, schema);
      return schema;
    case TypeKind::kBool:
      return {{"type", "boolean"}};
    case TypeKind::kAny:
      return {};
    case TypeKind::kNone:
      return {{"type", "null"}};
    case TypeKind::kList:
      schema = {{"type", "array"}, {"items", SchemaOf(*type.parts[0])}};
      AddOptions(type, kArrayKeys, schema);
      return schema;
    case TypeKind::kDict:
      return DictSchema(type);
    case TypeKind::kLiteral:
      return LiteralSchema(type.values);
    case TypeKind::kUnion:
      return UnionSchema(type);
    case TypeKind::kNullable:
      return AnyOf({SchemaOf(*type.parts[0]), {{"type", "null"}}});
    case TypeKind::kModel:
      return {{"$ref", InternalReference(type.model)}};
    case TypeKind::kAfter:
      schema = SchemaOf(*type.parts[0]);
      for (const auto& [key, value] : type.shown) schema.Set(key, value);
      return schema;
    case TypeKind::kChain:
      return SchemaOf(*type.parts[0]);
  }
  return schema;
}

// Models, and what wraps nothing but a model, have titles of their own.
bool TakesTitle(const Type& type) {
  if (type.kind == TypeKind::kModel) return false;
  if (type.kind == TypeKind::kNullable || type.kind == TypeKind::kAfter) {
    return TakesTitle(*type.parts[0]);
  }
  return true;
}

// An option that is given and not None.
const json::Value* Option(const FieldInfo& info, std::string_view name) {
  const json::Value* value = info.options.Find(name);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::string PropertyName(const Field& field) {
  for (std::string_view option : {"validation_alias", "alias"}) {
    const json::Value* alias = Option(field.info, option);
    if (alias != nullptr && alias->is_string()) return alias->as_string();
  }
  return std::string(field.name);
}

// Keywords of Field that are no part of the schema's own text.
constexpr std::string_view kKnown[] = {"alias",
                                       "alias_priority",
                                       "allow_inf_nan",
                                       "allow_mutation",
                                       "coerce_numbers_to_str",
                                       "const",
                                       "decimal_places",
                                       "default",
                                       "default_factory",
                                       "deprecated",
                                       "description",
                                       "discriminator",
                                       "examples",
                                       "exclude",
                                       "exclude_if",
                                       "fail_fast",
                                       "field_title_generator",
                                       "frozen",
                                       "ge",
                                       "gt",
                                       "include",
                                       "init",
                                       "init_var",
                                       "json_schema_extra",
                                       "kw_only",
                                       "le",
                                       "lt",
                                       "max_digits",
                                       "max_items",
                                       "max_length",
                                       "min_items",
                                       "min_length",
                                       "multiple_of",
                                       "pattern",
                                       "regex",
                                       "repr",
                                       "serialization_alias",
                                       "strict",
                                       "title",
                                       "union_mode",
                                       "unique_items",
                                       "validate_default",
                                       "validation_alias"};

// json_schema_extra, or the unknown keywords when it is not given.
void AddExtra(const FieldInfo& info, json::Object& schema) {
  const json::Value* extra = Option(info, "json_schema_extra");
  if (extra != nullptr && json::Truth(*extra)) {
    if (!extra->is_object()) return;
    for (const auto& [key, value] : extra->as_object()) schema.Set(key, value);
    return;
  }
  for (const auto& [key, value] : info.options) {
    if (!std::ranges::binary_search(kKnown, key)) schema.Set(key, value);
  }
}

void AddInfo(const FieldInfo& info, json::Object& schema) {
  if (info.default_value) schema.Set("default", *info.default_value);
  for (std::string_view key : {"title", "description"}) {
    if (const json::Value* value = Option(info, key)) schema.Set(key, *value);
  }
  const json::Value* deprecated = Option(info, "deprecated");
  if (deprecated != nullptr && (deprecated->is_string() || json::Truth(*deprecated))) {
    schema.Set("deprecated", true);
  }
  if (const json::Value* examples = Option(info, "examples")) schema.Set("examples", *examples);
  AddExtra(info, schema);
}

// What the referenced model says in the same words is left out beside the reference.
void RemoveRedundant(const Models& models, json::Object& schema) {
  const json::Value* reference = schema.Find("$ref");
  if (reference == nullptr || !reference->is_string()) return;
  const json::Object* model = FindModelSchema(models, reference->as_string());
  if (model == nullptr) return;
  const json::Object copy = schema;
  for (const auto& [key, value] : copy) {
    const json::Value* same = key == "$ref" ? nullptr : model->Find(key);
    if (same != nullptr && LooselyEqual(*same, value)) schema.Erase(key);
  }
}

json::Object PropertySchema(const Field& field, const Type& applied, std::string_view name,
                            const Models& models) {
  json::Object schema = SchemaOf(applied);
  AddInfo(field.info, schema);
  if (!schema.Contains("title") && TakesTitle(applied)) schema.Set("title", TitleOf(name));
  RemoveRedundant(models, schema);
  return schema;
}

// A default that is no default_factory's, or a default_factory that the library calls.
bool IsRequired(const FieldInfo& info) {
  const json::Value* factory = Option(info, "default_factory");
  return !info.default_value && (factory == nullptr || !json::Truth(*factory));
}

// Case mappings for all of Unicode, whatever the process's own locale is.
locale_t UnicodeLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}
std::wint_t ToUpper(std::wint_t c) {
  const locale_t locale = UnicodeLocale();
  return locale != nullptr ? towupper_l(c, locale) : towupper(c);
}
std::wint_t ToLower(std::wint_t c) {
  const locale_t locale = UnicodeLocale();
  return locale != nullptr ? towlower_l(c, locale) : towlower(c);
}

void AppendUtf8(std::string& out, std::wint_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::wint_t NextCodePoint(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  std::wint_t value = extra == 0 ? lead : lead & (0x3Fu >> extra);
  for (int i = 0; i < extra && at < text.size(); ++i) {
    value = (value << 6) | (static_cast<unsigned char>(text[at++]) & 0x3Fu);
  }
  return value;
}

}  // namespace

std::string TitleOf(std::string_view name) {
  std::string title;
  bool in_word = false;
  for (std::size_t at = 0; at < name.size();) {
    const std::wint_t c = NextCodePoint(name, at);
    const std::wint_t upper = ToUpper(c);
    const std::wint_t lower = ToLower(c);
    constexpr std::wint_t kSharpS = 0xDF;  // has case, but no capital of one letter
    const bool is_cased = upper != lower || c == kSharpS;
    if (c == kSharpS && !in_word) {
      title += "Ss";
    } else if (c == '_') {
      title += ' ';
    } else {
      AppendUtf8(title, in_word ? lower : upper);
    }
    in_word = is_cased;
  }
  const auto first = title.find_first_not_of(" \t\n\r\f\v");
  if (first == std::string::npos) return {};
  return title.substr(first, title.find_last_not_of(" \t\n\r\f\v") - first + 1);
}

json::Object ModelSchema(std::string_view name, const std::vector<Field>& fields,
                         const std::vector<TypePtr>& applied, const Models& models) {
  json::Object properties;
  json::Array required;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string property = PropertyName(fields[i]);
    properties.Set(property, PropertySchema(fields[i], *applied[i], property, models));
    if (IsRequired(fields[i].info)) required.emplace_back(property);
  }
  json::Object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema.Set("required", std::move(required));
  schema.Set("title", name);
  return schema;
}

}  // namespace caisson::workflow::schema
