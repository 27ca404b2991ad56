// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "errors/json_schema.h"
#include "json/path.h"
#include "json/same.h"
#include "json/schema_rules.h"
#include "json/schema_words.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

// One search is bounded by its steps; many that just keep within that are by the clock.
constexpr std::chrono::seconds kMaxMatching{2};

// The way to a value, from the inside out; lives on the stack of the check.
struct Where {
  const Where* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;
  bool is_index = false;
};

std::string PathOf(const Where* where) {
  PathBuilder path;
  for (; where->parent != nullptr; where = where->parent) {
    if (where->is_index) {
      path.PrependIndex(where->index);
    } else {
      path.PrependKey(where->key);
    }
  }
  return path.Finish();
}

std::uint64_t CodePoints(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::uint8_t TypeBits(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return kNullBit;
    case Value::Kind::kBool:
      return kBoolBit;
    case Value::Kind::kInt:
    case Value::Kind::kBigInt:
      return kIntegerBit | kNumberBit;
    case Value::Kind::kDouble:
      // A whole number may be written 1.0 or 1e3.
      return ExactNumber::Of(value).IsWhole() ? kIntegerBit | kNumberBit : kNumberBit;
    case Value::Kind::kString:
      return kStringBit;
    case Value::Kind::kArray:
      return kArrayBit;
    case Value::Kind::kObject:
      return kObjectBit;
  }
  return 0;
}

}  // namespace

// One check of one value. A rule says whether the value keeps it; what breaks it goes to `sink`,
// which is null where only that counts.
class SchemaCheck {
 public:
  SchemaCheck(const std::vector<SchemaRule>& rules, const SchemaLimits& limits)
      : rules_(rules), limits_(limits), steps_(limits.max_steps) {}

  Result<Verdict> Run(const Value& instance) {
    Verdict verdict;
    const Where root;
    Keeps(0, instance, root, &verdict);
    if (failure_) return Fail(*std::move(failure_));
    return verdict;
  }

 private:
  using Sink = Verdict*;

  bool Stopped() const { return failure_.has_value(); }
  void Stop(ErrorCode code, std::string message) {
    if (!failure_) failure_ = Status{code, std::move(message), {}, {}};
  }
  bool Spend(std::int64_t cost) {
    steps_ -= cost;
    if (steps_ >= 0) return true;
    Stop(errors::kJsonSchemaTooCostly, "checking the value against its schema takes more than " +
                                           std::to_string(limits_.max_steps) +
                                           " steps; make the value smaller, or the schema "
                                           "simpler where alternatives stand in alternatives");
    return false;
  }

  // `message` is made only when somebody will read it.
  template <typename Message>
  bool Report(Sink sink, const Where& where, std::string_view keyword, const Message& message) {
    if (sink == nullptr || Stopped()) return false;
    if (sink->violations.size() >= limits_.max_violations) {
      ++sink->more;
      return false;
    }
    sink->violations.push_back({PathOf(&where), std::string(keyword), message()});
    return false;
  }

  bool Keeps(RuleIndex index, const Value& value, const Where& where, Sink sink) {
    if (Stopped() || !Spend(1)) return false;
    if (++depth_ > limits_.max_depth) {
      Stop(errors::kJsonSchemaTooDeep,
           "the value is nested more deeply than its schema can be followed (" +
               std::to_string(limits_.max_depth) +
               " levels), or the schema refers to itself "
               "without end");
    }
    const bool kept = !Stopped() && KeepsAll(rules_[index], value, where, sink);
    --depth_;
    return kept;
  }

  bool KeepsAll(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    if (rule.never) {
      return Report(sink, where, "false", [] { return std::string("is not allowed here"); });
    }
    bool kept = !rule.reference || Keeps(*rule.reference, value, where, sink);
    if (!kept && sink == nullptr) return false;
    kept &= KeepsValue(rule, value, where, sink);
    if (!kept && sink == nullptr) return false;
    if (value.is_string()) kept &= KeepsText(rule, value, where, sink);
    if (value.is_number()) kept &= KeepsNumber(rule, value, where, sink);
    if (value.is_array()) kept &= KeepsArray(rule, value, where, sink);
    if (value.is_object()) kept &= KeepsObject(rule, value, where, sink);
    if (!kept && sink == nullptr) return false;
    return KeepsCombinations(rule, value, where, sink) && kept;
  }

  bool KeepsValue(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    bool kept = true;
    if (rule.types != kAllBits && (TypeBits(value) & rule.types) == 0) {
      kept = Report(sink, where, "type", [&] {
        return "must be " + TypeList(rule.types) + ", not " + std::string(SchemaTypeName(value));
      });
    }
    const auto is_value = [&](const Value& choice) { return Same(value, choice, steps_); };
    if (rule.choices && std::ranges::none_of(*rule.choices, is_value) && Spend(0)) {
      kept = Report(sink, where, "enum", [&] {
        return "must be one of " + ChoiceList(*rule.choices) + ", not " + ShortJson(value);
      });
    }
    if (rule.constant && !is_value(*rule.constant) && Spend(0)) {
      kept = Report(sink, where, "const", [&] {
        return "must be " + ShortJson(*rule.constant) + ", not " + ShortJson(value);
      });
    }
    return kept;
  }

  bool Matches(const Pattern& pattern, const std::string& text) {
    if (!Spend(1 + static_cast<std::int64_t>(text.size() / 16))) return false;
    const auto start = std::chrono::steady_clock::now();
    auto matches = pattern.Matches(text);
    matching_ += std::chrono::steady_clock::now() - start;
    if (!matches) Stop(matches.error().code, matches.error().message);
    if (matching_ > kMaxMatching) {
      Stop(errors::kJsonSchemaTooCostly, "matching the patterns of the schema takes more than " +
                                             std::to_string(kMaxMatching.count()) +
                                             " seconds; simplify them");
    }
    return !Stopped() && *matches;
  }

  bool KeepsText(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    const std::string& text = value.as_string();
    bool kept = true;
    if (rule.min_length || rule.max_length) {
      if (!Spend(1 + static_cast<std::int64_t>(text.size() / 256))) return false;
      kept = KeepsCount(CodePoints(text), rule.min_length, rule.max_length, "Length",
                        {"character", "characters"}, where, sink);
    }
    if (rule.pattern && !Matches(*rule.pattern, text)) {
      kept = Report(sink, where, "pattern", [&] {
        return "must match the pattern " + ShortJson(rule.pattern_text) + ", which " +
               ShortJson(value) + " does not";
      });
    }
    return kept;
  }

  struct Unit {
    std::string_view one, many;
  };

  bool KeepsCount(std::uint64_t count, std::optional<std::uint64_t> least,
                  std::optional<std::uint64_t> most, std::string_view what, Unit unit,
                  const Where& where, Sink sink) {
    const auto message = [&](std::string_view bound, std::uint64_t limit) {
      return "must have " + std::string(bound) + " " + Counted(limit, unit.one, unit.many) +
             ", not " + std::to_string(count);
    };
    if (least && count < *least) {
      return Report(sink, where, "min" + std::string(what),
                    [&] { return message("at least", *least); });
    }
    if (most && count > *most) {
      return Report(sink, where, "max" + std::string(what),
                    [&] { return message("at most", *most); });
    }
    return true;
  }

  bool KeepsNumber(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    if (!rule.minimum && !rule.maximum && !rule.above && !rule.below && !rule.multiple_of) {
      return true;
    }
    const ExactNumber number = ExactNumber::Of(value);
    if (!Spend(1 + static_cast<std::int64_t>(number.digits.size() / 8))) return false;
    bool kept = true;
    const auto check = [&](const std::optional<NumberBound>& bound, std::string_view keyword,
                           std::string_view words, const auto& holds) {
      if (!bound || holds(number, bound->exact)) return;
      kept = Report(sink, where, keyword, [&] {
        return "must be " + std::string(words) + " " + ShortJson(bound->given) + ", not " +
               ShortJson(value);
      });
    };
    check(rule.minimum, "minimum", "at least", std::greater_equal<>());
    check(rule.maximum, "maximum", "at most", std::less_equal<>());
    check(rule.above, "exclusiveMinimum", "greater than", std::greater<>());
    check(rule.below, "exclusiveMaximum", "less than", std::less<>());
    check(rule.multiple_of, "multipleOf", "a multiple of",
          [](const ExactNumber& a, const ExactNumber& b) { return a.IsMultipleOf(b); });
    return kept;
  }

  bool KeepsArray(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    const Array& items = value.as_array();
    bool kept = KeepsCount(items.size(), rule.min_items, rule.max_items, "Items", {"item", "items"},
                           where, sink);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (Stopped() || (!kept && sink == nullptr)) return false;
      const bool is_prefix = i < rule.prefix_items.size();
      if (!is_prefix && !rule.items) break;
      const RuleIndex index = is_prefix ? rule.prefix_items[i] : *rule.items;
      kept &= Keeps(index, items[i], {&where, {}, i, true}, sink);
    }
    if (rule.unique_items) kept &= AreUnique(items, where, sink);
    if (rule.contains) kept &= Contains(rule, items, where, sink);
    return kept;
  }

  bool AreUnique(const Array& items, const Where& where, Sink sink) {
    std::unordered_multimap<std::uint64_t, std::size_t> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::uint64_t hash = SameHash(items[i], steps_);
      if (!Spend(1)) return false;
      const auto [begin, end] = seen.equal_range(hash);
      for (auto earlier = begin; earlier != end; ++earlier) {
        if (!Same(items[earlier->second], items[i], steps_)) continue;
        return Report(sink, where, "uniqueItems", [&] {
          return "must have no two equal items; items " + std::to_string(earlier->second) +
                 " and " + std::to_string(i) + " are";
        });
      }
      seen.emplace(hash, i);
    }
    return Spend(0);
  }

  bool Contains(const SchemaRule& rule, const Array& items, const Where& where, Sink sink) {
    std::uint64_t count = 0;
    for (const Value& item : items) {
      if (Stopped()) return false;
      count += Keeps(*rule.contains, item, where, nullptr) ? 1 : 0;
    }
    if (count < rule.min_contains) {
      return Report(sink, where, rule.min_contains == 1 ? "contains" : "minContains", [&] {
        return "must contain at least " + Counted(rule.min_contains, "item", "items") +
               " of the kind that its schema describes, not " + std::to_string(count);
      });
    }
    if (rule.max_contains && count > *rule.max_contains) {
      return Report(sink, where, "maxContains", [&] {
        return "must contain at most " + Counted(*rule.max_contains, "item", "items") +
               " of the kind that its schema describes, not " + std::to_string(count);
      });
    }
    return true;
  }

  bool KeepsObject(const SchemaRule& rule, const Value& value, const Where& where, Sink sink) {
    const Object& object = value.as_object();
    bool kept = KeepsCount(object.size(), rule.min_properties, rule.max_properties, "Properties",
                           {"property", "properties"}, where, sink);
    for (const std::string& name : rule.required) {
      if (!Spend(1)) return false;
      if (object.Contains(name)) continue;
      kept = Report(sink, {&where, name}, "required", [] { return std::string("is required"); });
    }
    for (const auto& [key, member] : object) {
      if (Stopped() || (!kept && sink == nullptr)) return false;
      kept &= KeepsMember(rule, key, member, {&where, key}, sink);
    }
    return KeepsDependencies(rule, value, where, sink) && kept;
  }

  bool KeepsMember(const SchemaRule& rule, const std::string& key, const Value& member,
                   const Where& where, Sink sink) {
    bool kept = !rule.property_names || KeepsName(*rule.property_names, key, where, sink);
    bool is_named = false;
    if (const auto known = rule.properties.find(key); known != rule.properties.end()) {
      is_named = true;
      kept &= Keeps(known->second, member, where, sink);
    }
    for (const auto& [pattern, index] : rule.pattern_properties) {
      if (!Matches(pattern, key)) continue;
      is_named = true;
      kept &= Keeps(index, member, where, sink);
    }
    if (is_named || !rule.additional_properties) return kept;
    if (rules_[*rule.additional_properties].never) {
      return Report(sink, where, "additionalProperties",
                    [&] { return "is no property of this object; it has " + PropertyList(rule); });
    }
    return Keeps(*rule.additional_properties, member, where, sink) && kept;
  }

  bool KeepsName(RuleIndex names, const std::string& key, const Where& where, Sink sink) {
    if (Keeps(names, Value(key), where, nullptr)) return true;
    return Report(sink, where, "propertyNames",
                  [] { return std::string("is a name that is not allowed here"); });
  }

  static std::string PropertyList(const SchemaRule& rule) {
    Array names;
    for (const auto& [name, index] : rule.properties) names.emplace_back(name);
    if (names.empty()) return "none";
    std::ranges::sort(names, {}, [](const Value& name) { return name.as_string(); });
    return ChoiceList(names);
  }

  bool KeepsDependencies(const SchemaRule& rule, const Value& value, const Where& where,
                         Sink sink) {
    bool kept = true;
    const Object& object = value.as_object();
    for (const auto& [key, names] : rule.dependent_required) {
      if (!object.Contains(key)) continue;
      for (const std::string& name : names) {
        if (!Spend(1)) return false;
        if (object.Contains(name)) continue;
        kept = Report(sink, {&where, name}, "dependentRequired",
                      [&] { return "is required beside " + ShortJson(key); });
      }
    }
    for (const auto& [key, index] : rule.dependent_schemas) {
      if (object.Contains(key)) kept &= Keeps(index, value, where, sink);
    }
    return kept;
  }

  bool KeepsCombinations(const SchemaRule& rule, const Value& value, const Where& where,
                         Sink sink) {
    bool kept = true;
    for (const RuleIndex part : rule.all_of) kept &= Keeps(part, value, where, sink);
    if (!rule.any_of.empty()) kept &= KeepsAny(rule.any_of, value, where, sink);
    if (!rule.one_of.empty()) kept &= KeepsOne(rule.one_of, value, where, sink);
    if (rule.negated && Keeps(*rule.negated, value, where, nullptr)) {
      kept = Report(sink, where, "not", [&] {
        return "must not be of the form that its schema excludes, as " + ShortJson(value) + " is";
      });
    }
    if (!rule.condition) return kept;
    const bool holds = Keeps(*rule.condition, value, where, nullptr);
    const std::optional<RuleIndex>& next = holds ? rule.then_rule : rule.else_rule;
    return (!next || Keeps(*next, value, where, sink)) && kept;
  }

  bool KeepsAny(const std::vector<RuleIndex>& parts, const Value& value, const Where& where,
                Sink sink) {
    for (const RuleIndex part : parts) {
      if (Keeps(part, value, where, nullptr)) return true;
    }
    return Report(sink, where, "anyOf",
                  [&] { return "fits none of its alternatives: " + Alternatives(parts, value); });
  }

  bool KeepsOne(const std::vector<RuleIndex>& parts, const Value& value, const Where& where,
                Sink sink) {
    std::size_t count = 0;
    for (const RuleIndex part : parts) count += Keeps(part, value, where, nullptr) ? 1 : 0;
    if (count == 1) return true;
    return Report(sink, where, "oneOf", [&] {
      if (count == 0) return "fits none of its alternatives: " + Alternatives(parts, value);
      return "must fit one of its alternatives only, and fits " + std::to_string(count);
    });
  }

  // What each alternative has against the value, in one line; paths are those within the value.
  std::string Alternatives(const std::vector<RuleIndex>& parts, const Value& value) {
    constexpr std::size_t kShown = 5;
    std::string text;
    for (std::size_t i = 0; i < parts.size() && i < kShown; ++i) {
      Verdict verdict;
      const Where root;
      Keeps(parts[i], value, root, &verdict);
      if (!text.empty()) text += "; or ";
      if (verdict.violations.empty()) break;  // out of steps
      const Violation& first = verdict.violations.front();
      if (first.path != "$") text += first.path.substr(first.path[1] == '.' ? 2 : 1) + " ";
      text += first.message;
      if (text.size() > 400) break;
    }
    if (parts.size() > kShown) text += "; …";
    return text;
  }

  const std::vector<SchemaRule>& rules_;
  const SchemaLimits& limits_;
  std::int64_t steps_;
  int depth_ = 0;
  std::chrono::steady_clock::duration matching_{0};
  std::optional<Status> failure_;
};

Result<Verdict> Schema::Check(const Value& instance, const SchemaLimits& limits) const {
  return SchemaCheck(rules_->rules, limits).Run(instance);
}

std::string Verdict::Text() const {
  std::string text;
  for (const Violation& violation : violations) {
    if (!text.empty()) text += "; ";
    text += violation.path + ": " + violation.message;
  }
  if (more > 0) text += "; and " + std::to_string(more) + " more";
  return text;
}

}  // namespace caisson::json
