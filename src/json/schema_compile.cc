// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "errors/json_schema.h"
#include "json/schema_rules.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

constexpr std::size_t kMaxRules = 20000;
constexpr int kMaxDepth = 200;
constexpr std::size_t kMaxPointer = 4096;  // each rule has one while the schema is compiled
constexpr std::string_view kDialect = "https://json-schema.org/draft/2020-12/schema";

constexpr std::pair<std::string_view, std::uint8_t> kTypes[] = {
    {"null", kNullBit},     {"boolean", kBoolBit}, {"integer", kIntegerBit}, {"number", kNumberBit},
    {"string", kStringBit}, {"array", kArrayBit},  {"object", kObjectBit}};

constexpr std::string_view kRefused[] = {"$dynamicRef", "$recursiveRef", "unevaluatedItems",
                                         "unevaluatedProperties"};

std::string Escaped(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

// nullopt: not well formed.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* begin = text.data() + i + 1;
    if (std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) return std::nullopt;
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

std::optional<std::string> Unescaped(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '~') {
      text += segment[i];
    } else if (i + 1 < segment.size() && (segment[i + 1] == '0' || segment[i + 1] == '1')) {
      text += segment[++i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return text;
}

const Value* Item(const Array& items, const std::string& segment) {
  std::size_t index = 0;
  const char* end = segment.data() + segment.size();
  const auto [stop, error] = std::from_chars(segment.data(), end, index);
  if (error != std::errc() || stop != end || segment.empty()) return nullptr;
  if (segment.size() > 1 && segment[0] == '0') return nullptr;
  return index < items.size() ? &items[index] : nullptr;
}

// The value that a JSON pointer leads to, with the pointer in one form; nullptr: none.
const Value* Follow(const Value& document, std::string_view pointer, std::string& canonical) {
  const Value* at = &document;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const auto segment = Unescaped(pointer.substr(1, end - 1));
    if (!segment) return nullptr;
    at = at->is_array() ? Item(at->as_array(), *segment) : at->Find(*segment);
    if (at == nullptr) return nullptr;
    canonical += "/" + Escaped(*segment);
    pointer.remove_prefix(end);
  }
  return at;
}

}  // namespace

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const Value& document) : document_(document) {}

  Result<Schema> Compile() {
    CAISSON_TRY(ReadIdentity());
    CAISSON_TRY(CollectAnchors(document_, "", 0));
    CAISSON_TRY(Subschema(document_, "", 0));
    // References are followed after what they stand in, so that they may lead in circles.
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      CAISSON_TRY(Link(next));
    }
    return Schema(std::move(rules_));
  }

 private:
  struct Pending {
    RuleIndex from;
    std::string reference;
    std::string where;
  };

  static std::unexpected<Status> Refuse(ErrorCode code, const std::string& where,
                                        const std::string& what) {
    return Fail(code, "the schema, at #" + where + ": " + what);
  }
  static std::unexpected<Status> Invalid(const std::string& where, const std::string& what) {
    return Refuse(errors::kJsonSchemaInvalid, where, what);
  }

  Result<void> ReadIdentity() {
    const Value* dialect = document_.Find("$schema");
    if (dialect != nullptr) {
      if (!dialect->is_string()) return Invalid("/$schema", "must be a string");
      std::string_view given = dialect->as_string();
      if (given.ends_with('#')) given.remove_suffix(1);
      if (given != kDialect) {
        return Refuse(errors::kJsonSchemaUnsupported, "/$schema",
                      "only " + std::string(kDialect) +
                          " is supported; write the schema in that "
                          "dialect and leave $schema out");
      }
    }
    if (const Value* id = document_.Find("$id"); id != nullptr) {
      if (!id->is_string()) return Invalid("/$id", "must be a string");
      base_ = id->as_string();
      if (base_.ends_with('#')) base_.pop_back();
    }
    return {};
  }

  // Anchors may stand in any schema; what stands in data (const, enum, default, examples) is none.
  Result<void> CollectAnchors(const Value& value, const std::string& where, int depth) {
    if (depth > 2 * kMaxDepth || where.size() > kMaxPointer) return TooDeep(where);
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        CAISSON_TRY(
            CollectAnchors(value.as_array()[i], where + "/" + std::to_string(i), depth + 1));
      }
    }
    if (!value.is_object()) return {};
    if (const Value* anchor = value.Find("$anchor"); anchor != nullptr && anchor->is_string()) {
      if (!anchors_.emplace(anchor->as_string(), where).second) {
        return Invalid(where + "/$anchor",
                       "the anchor " + Quote(anchor->as_string()) + " is there twice");
      }
    }
    for (const auto& [key, member] : value.as_object()) {
      if (key == "const" || key == "enum" || key == "default" || key == "examples") continue;
      CAISSON_TRY(CollectAnchors(member, where + "/" + Escaped(key), depth + 1));
    }
    return {};
  }

  static std::unexpected<Status> TooDeep(const std::string& where) {
    return Refuse(errors::kJsonSchemaTooLarge, Shortened(where, 200),
                  "it is nested more deeply than " + std::to_string(kMaxDepth) +
                      " levels, or its names are too long");
  }

  Result<RuleIndex> Subschema(const Value& schema, const std::string& where, int depth) {
    if (const auto known = by_pointer_.find(where); known != by_pointer_.end()) {
      return known->second;
    }
    if (depth > kMaxDepth || where.size() > kMaxPointer) return TooDeep(where);
    if (!schema.is_bool() && !schema.is_object()) {
      return Invalid(where, "a schema must be an object, true or false");
    }
    if (rules_->rules.size() >= kMaxRules) {
      return Refuse(errors::kJsonSchemaTooLarge, where,
                    "it has more than " + std::to_string(kMaxRules) + " parts");
    }
    const auto index = static_cast<RuleIndex>(rules_->rules.size());
    by_pointer_.emplace(where, index);
    rules_->rules.emplace_back();
    SchemaRule rule;
    if (schema.is_bool()) {
      rule.never = !schema.as_bool();
    } else {
      CAISSON_TRY(ReadKeywords(schema.as_object(), where, depth, index, rule));
    }
    rules_->rules[index] = std::move(rule);
    return index;
  }

  Result<void> ReadKeywords(const Object& schema, const std::string& where, int depth,
                            RuleIndex index, SchemaRule& rule) {
    for (const std::string_view keyword : kRefused) {
      if (!schema.Contains(keyword)) continue;
      return Refuse(errors::kJsonSchemaUnsupported, where + "/" + std::string(keyword),
                    "this keyword is not supported; leave it out or say the same with others");
    }
    if (!where.empty() && schema.Contains("$id")) {
      return Refuse(errors::kJsonSchemaUnsupported, where + "/$id",
                    "an $id within a schema is not supported; use $defs and references to them");
    }
    CAISSON_TRY(ReadReference(schema, where, index));
    CAISSON_TRY(ReadValues(schema, where, rule));
    CAISSON_TRY(ReadText(schema, where, rule));
    CAISSON_TRY(ReadNumbers(schema, where, rule));
    CAISSON_TRY(ReadArrays(schema, where, depth, rule));
    CAISSON_TRY(ReadObjects(schema, where, depth, rule));
    CAISSON_TRY(ReadCombinations(schema, where, depth, rule));
    return ReadDefinitions(schema, where, depth);
  }

  Result<void> ReadReference(const Object& schema, const std::string& where, RuleIndex index) {
    const Value* reference = schema.Find("$ref");
    if (reference == nullptr) return {};
    if (!reference->is_string()) return Invalid(where + "/$ref", "must be a string");
    pending_.push_back({index, reference->as_string(), where + "/$ref"});
    return {};
  }

  Result<void> Link(const Pending& pending) {
    std::string_view reference = pending.reference;
    if (!base_.empty() && reference.starts_with(base_) &&
        (reference.size() == base_.size() || reference[base_.size()] == '#')) {
      reference.remove_prefix(base_.size());
    } else if (!reference.empty() && reference[0] != '#') {
      return Refuse(errors::kJsonSchemaUnsupported, pending.where,
                    "references to other documents are not supported: " +
                        Quote(pending.reference.substr(0, 200)));
    }
    if (reference.starts_with('#')) reference.remove_prefix(1);
    auto fragment = PercentDecoded(reference);
    if (fragment && !fragment->empty() && (*fragment)[0] != '/') {
      const auto anchor = anchors_.find(*fragment);
      fragment = anchor == anchors_.end() ? std::nullopt : std::optional(anchor->second);
    }
    std::string canonical;
    const Value* target = fragment ? Follow(document_, *fragment, canonical) : nullptr;
    if (target == nullptr) {
      return Refuse(
          errors::kJsonSchemaReference, pending.where,
          "there is nothing at " + Quote(pending.reference.substr(0, 200)) + " in this schema");
    }
    CAISSON_ASSIGN(const RuleIndex index, Subschema(*target, canonical, 0));
    rules_->rules[pending.from].reference = index;
    return {};
  }

  Result<std::uint8_t> TypeBit(const Value& name, const std::string& where) {
    for (const auto& [known, bit] : kTypes) {
      if (name.is_string() && name.as_string() == known) return bit;
    }
    return Invalid(where,
                   "a type must be one of \"null\", \"boolean\", \"integer\", \"number\", "
                   "\"string\", \"array\" and \"object\"");
  }

  Result<void> ReadValues(const Object& schema, const std::string& where, SchemaRule& rule) {
    if (const Value* type = schema.Find("type"); type != nullptr) {
      rule.types = 0;
      const Array one{*type};
      const Array& names = type->is_array() ? type->as_array() : one;
      if (names.empty()) return Invalid(where + "/type", "must name at least one type");
      for (const Value& name : names) {
        CAISSON_ASSIGN(const std::uint8_t bit, TypeBit(name, where + "/type"));
        rule.types |= bit;
      }
    }
    if (const Value* choices = schema.Find("enum"); choices != nullptr) {
      if (!choices->is_array()) return Invalid(where + "/enum", "must be an array");
      rule.choices = choices->as_array();
    }
    if (const Value* constant = schema.Find("const"); constant != nullptr) {
      rule.constant = *constant;
    }
    return {};
  }

  Result<void> ReadCount(const Object& schema, const std::string& where, std::string_view keyword,
                         std::optional<std::uint64_t>& count) {
    const Value* value = schema.Find(keyword);
    if (value == nullptr) return {};
    const std::string place = where + "/" + std::string(keyword);
    if (!value->is_number()) return Invalid(place, "must be a whole number from 0");
    const ExactNumber exact = ExactNumber::Of(*value);
    if (exact.negative || !exact.IsWhole()) return Invalid(place, "must be a whole number from 0");
    if (exact.digits.size() + static_cast<std::size_t>(exact.exponent) > 18) {
      count = std::uint64_t{1} << 62;
      return {};
    }
    count = exact.IsZero()
                ? 0
                : std::stoull(exact.digits +
                              std::string(static_cast<std::size_t>(exact.exponent), '0'));
    return {};
  }

  Result<std::optional<Pattern>> ReadPattern(const Value& text, const std::string& where) {
    if (!text.is_string()) return Invalid(where, "must be a string with a regular expression");
    auto pattern = Pattern::Compile(text.as_string());
    if (!pattern) return Refuse(pattern.error().code, where, pattern.error().message);
    return std::optional<Pattern>(*std::move(pattern));
  }

  Result<void> ReadText(const Object& schema, const std::string& where, SchemaRule& rule) {
    CAISSON_TRY(ReadCount(schema, where, "minLength", rule.min_length));
    CAISSON_TRY(ReadCount(schema, where, "maxLength", rule.max_length));
    if (const Value* pattern = schema.Find("pattern"); pattern != nullptr) {
      CAISSON_ASSIGN(rule.pattern, ReadPattern(*pattern, where + "/pattern"));
      rule.pattern_text = pattern->as_string();
    }
    return {};
  }

  Result<void> ReadNumber(const Object& schema, const std::string& where, std::string_view keyword,
                          std::optional<NumberBound>& bound) {
    const Value* value = schema.Find(keyword);
    if (value == nullptr) return {};
    if (!value->is_number()) {
      return Invalid(where + "/" + std::string(keyword), "must be a number");
    }
    bound = NumberBound{*value, ExactNumber::Of(*value)};
    return {};
  }

  Result<void> ReadNumbers(const Object& schema, const std::string& where, SchemaRule& rule) {
    CAISSON_TRY(ReadNumber(schema, where, "minimum", rule.minimum));
    CAISSON_TRY(ReadNumber(schema, where, "maximum", rule.maximum));
    CAISSON_TRY(ReadNumber(schema, where, "exclusiveMinimum", rule.above));
    CAISSON_TRY(ReadNumber(schema, where, "exclusiveMaximum", rule.below));
    CAISSON_TRY(ReadNumber(schema, where, "multipleOf", rule.multiple_of));
    if (rule.multiple_of &&
        (rule.multiple_of->exact.IsZero() || rule.multiple_of->exact.negative)) {
      return Invalid(where + "/multipleOf", "must be greater than 0");
    }
    return {};
  }

  Result<void> ReadOne(const Object& schema, const std::string& where, std::string_view keyword,
                       int depth, std::optional<RuleIndex>& rule) {
    const Value* value = schema.Find(keyword);
    if (value == nullptr) return {};
    CAISSON_ASSIGN(rule, Subschema(*value, where + "/" + std::string(keyword), depth + 1));
    return {};
  }

  Result<void> ReadList(const Object& schema, const std::string& where, std::string_view keyword,
                        int depth, std::vector<RuleIndex>& rules) {
    const Value* value = schema.Find(keyword);
    if (value == nullptr) return {};
    const std::string place = where + "/" + std::string(keyword);
    if (!value->is_array() || value->as_array().empty()) {
      return Invalid(place, "must be an array of at least one schema");
    }
    for (std::size_t i = 0; i < value->as_array().size(); ++i) {
      CAISSON_ASSIGN(const RuleIndex index,
                     Subschema(value->as_array()[i], place + "/" + std::to_string(i), depth + 1));
      rules.push_back(index);
    }
    return {};
  }

  Result<void> ReadArrays(const Object& schema, const std::string& where, int depth,
                          SchemaRule& rule) {
    if (const Value* items = schema.Find("items"); items != nullptr && items->is_array()) {
      return Invalid(where + "/items",
                     "must be one schema; a list of schemas, one an item, is "
                     "written prefixItems");
    }
    CAISSON_TRY(ReadList(schema, where, "prefixItems", depth, rule.prefix_items));
    CAISSON_TRY(ReadOne(schema, where, "items", depth, rule.items));
    CAISSON_TRY(ReadOne(schema, where, "contains", depth, rule.contains));
    CAISSON_TRY(ReadCount(schema, where, "minItems", rule.min_items));
    CAISSON_TRY(ReadCount(schema, where, "maxItems", rule.max_items));
    CAISSON_TRY(ReadCount(schema, where, "maxContains", rule.max_contains));
    std::optional<std::uint64_t> least;
    CAISSON_TRY(ReadCount(schema, where, "minContains", least));
    rule.min_contains = least.value_or(1);
    if (const Value* unique = schema.Find("uniqueItems"); unique != nullptr) {
      if (!unique->is_bool()) return Invalid(where + "/uniqueItems", "must be true or false");
      rule.unique_items = unique->as_bool();
    }
    return {};
  }

  Result<std::vector<std::string>> ReadNames(const Value& names, const std::string& where) {
    std::vector<std::string> list;
    if (!names.is_array()) return Invalid(where, "must be an array of strings");
    for (const Value& name : names.as_array()) {
      if (!name.is_string()) return Invalid(where, "must be an array of strings");
      list.push_back(name.as_string());
    }
    return list;
  }

  // Calls `take` for each member of the object that `keyword` holds.
  template <typename Take>
  Result<void> ForMembers(const Object& schema, const std::string& where, std::string_view keyword,
                          const Take& take) {
    const Value* value = schema.Find(keyword);
    if (value == nullptr) return {};
    const std::string place = where + "/" + std::string(keyword);
    if (!value->is_object()) return Invalid(place, "must be an object");
    for (const auto& [key, member] : value->as_object()) {
      CAISSON_TRY(take(key, member, place + "/" + Escaped(key)));
    }
    return {};
  }

  Result<void> ReadObjects(const Object& schema, const std::string& where, int depth,
                           SchemaRule& rule) {
    CAISSON_TRY(ReadProperties(schema, where, depth, rule));
    CAISSON_TRY(ReadOne(schema, where, "additionalProperties", depth, rule.additional_properties));
    CAISSON_TRY(ReadOne(schema, where, "propertyNames", depth, rule.property_names));
    CAISSON_TRY(ReadCount(schema, where, "minProperties", rule.min_properties));
    CAISSON_TRY(ReadCount(schema, where, "maxProperties", rule.max_properties));
    if (const Value* required = schema.Find("required"); required != nullptr) {
      CAISSON_ASSIGN(rule.required, ReadNames(*required, where + "/required"));
    }
    return ReadDependencies(schema, where, depth, rule);
  }

  Result<void> ReadProperties(const Object& schema, const std::string& where, int depth,
                              SchemaRule& rule) {
    CAISSON_TRY(ForMembers(
        schema, where, "properties",
        [&](const std::string& key, const Value& member, const std::string& place) -> Result<void> {
          CAISSON_ASSIGN(const RuleIndex index, Subschema(member, place, depth + 1));
          rule.properties.emplace(key, index);
          return {};
        }));
    return ForMembers(
        schema, where, "patternProperties",
        [&](const std::string& key, const Value& member, const std::string& place) -> Result<void> {
          CAISSON_ASSIGN(auto pattern, ReadPattern(Value(key), place));
          CAISSON_ASSIGN(const RuleIndex index, Subschema(member, place, depth + 1));
          rule.pattern_properties.emplace_back(*std::move(pattern), index);
          return {};
        });
  }

  Result<void> ReadDependencies(const Object& schema, const std::string& where, int depth,
                                SchemaRule& rule) {
    CAISSON_TRY(ForMembers(
        schema, where, "dependentRequired",
        [&](const std::string& key, const Value& member, const std::string& place) -> Result<void> {
          CAISSON_ASSIGN(auto names, ReadNames(member, place));
          rule.dependent_required.emplace_back(key, std::move(names));
          return {};
        }));
    return ForMembers(
        schema, where, "dependentSchemas",
        [&](const std::string& key, const Value& member, const std::string& place) -> Result<void> {
          CAISSON_ASSIGN(const RuleIndex index, Subschema(member, place, depth + 1));
          rule.dependent_schemas.emplace_back(key, index);
          return {};
        });
  }

  Result<void> ReadCombinations(const Object& schema, const std::string& where, int depth,
                                SchemaRule& rule) {
    CAISSON_TRY(ReadList(schema, where, "allOf", depth, rule.all_of));
    CAISSON_TRY(ReadList(schema, where, "anyOf", depth, rule.any_of));
    CAISSON_TRY(ReadList(schema, where, "oneOf", depth, rule.one_of));
    CAISSON_TRY(ReadOne(schema, where, "not", depth, rule.negated));
    CAISSON_TRY(ReadOne(schema, where, "if", depth, rule.condition));
    CAISSON_TRY(ReadOne(schema, where, "then", depth, rule.then_rule));
    return ReadOne(schema, where, "else", depth, rule.else_rule);
  }

  // Definitions that nothing refers to must be well formed all the same.
  Result<void> ReadDefinitions(const Object& schema, const std::string& where, int depth) {
    return ForMembers(
        schema, where, "$defs",
        [&](const std::string&, const Value& member, const std::string& place) -> Result<void> {
          CAISSON_TRY(Subschema(member, place, depth + 1));
          return {};
        });
  }

  const Value& document_;
  std::string base_;
  std::shared_ptr<Schema::Rules> rules_ = std::make_shared<Schema::Rules>();
  std::unordered_map<std::string, RuleIndex> by_pointer_;
  std::unordered_map<std::string, std::string> anchors_;
  std::vector<Pending> pending_;
};

Result<Schema> Schema::Compile(const Value& document) { return SchemaCompiler(document).Compile(); }

}  // namespace caisson::json
