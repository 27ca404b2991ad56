// SPDX-License-Identifier: Apache-2.0
// The inside of a compiled Schema: rules that refer to one another by index. Immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/exact_number.h"
#include "json/pattern.h"
#include "json/schema.h"

namespace caisson::json {

using RuleIndex = std::uint32_t;

// Bits of SchemaRule::types; an integer is a number, too.
inline constexpr std::uint8_t kNullBit = 1, kBoolBit = 2, kIntegerBit = 4, kNumberBit = 8,
                              kStringBit = 16, kArrayBit = 32, kObjectBit = 64, kAllBits = 127;

struct NumberBound {
  Value given;  // as the schema writes it
  ExactNumber exact;
};

struct SchemaRule {
  bool never = false;  // the schema `false`
  std::optional<RuleIndex> reference;
  std::uint8_t types = kAllBits;
  std::optional<Array> choices;  // enum
  std::optional<Value> constant;

  std::optional<std::uint64_t> min_length, max_length;
  std::optional<Pattern> pattern;
  std::string pattern_text;

  std::optional<NumberBound> minimum, maximum, above, below, multiple_of;

  std::vector<RuleIndex> prefix_items;
  std::optional<RuleIndex> items;
  std::optional<std::uint64_t> min_items, max_items;
  bool unique_items = false;
  std::optional<RuleIndex> contains;
  std::uint64_t min_contains = 1;
  std::optional<std::uint64_t> max_contains;

  std::unordered_map<std::string, RuleIndex> properties;
  std::vector<std::string> required;
  std::vector<std::pair<Pattern, RuleIndex>> pattern_properties;
  std::optional<RuleIndex> additional_properties, property_names;
  std::optional<std::uint64_t> min_properties, max_properties;
  std::vector<std::pair<std::string, std::vector<std::string>>> dependent_required;
  std::vector<std::pair<std::string, RuleIndex>> dependent_schemas;

  std::vector<RuleIndex> all_of, any_of, one_of;
  std::optional<RuleIndex> negated, condition, then_rule, else_rule;
};

struct Schema::Rules {
  std::vector<SchemaRule> rules;  // the first is the document itself
};

}  // namespace caisson::json
