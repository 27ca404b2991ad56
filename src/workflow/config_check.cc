// SPDX-License-Identifier: Apache-2.0
// CheckConfig of registry.h: the values of a node's config against the field types of the table,
// read the way the peer's model library reads JSON input (an int field takes "5" and 5.0).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors/config.h"
#include "json/writer.h"
#include "workflow/ir.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n\r\f\v");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n\r\f\v") - first + 1);
}

// Splits "A | dict[B, C]" at `separator` outside brackets and quotes.
std::vector<std::string_view> Split(std::string_view type, char separator) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const char c = type[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(Trim(type.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(Trim(type.substr(start)));
  return parts;
}

// "dict[str, int]" -> {"dict", {"str", "int"}}; "str" -> {"str", {}}.
struct TypeExpression {
  std::string_view head;
  std::vector<std::string_view> arguments;
};
TypeExpression ParseType(std::string_view type) {
  const auto bracket = type.find('[');
  if (bracket == std::string_view::npos || !type.ends_with(']')) return {type, {}};
  return {type.substr(0, bracket), Split(type.substr(bracket + 1, type.size() - bracket - 2), ',')};
}

// A string that is, or holds, what the run replaces: it may become any type.
bool IsDeferred(const json::Value& value) {
  if (value.is_object()) return value.Find(kKindMarker) != nullptr;
  if (!value.is_string()) return false;
  const std::string_view text = value.as_string();
  if (HasTemplate(text)) return true;
  const std::string_view trimmed = Trim(text);
  return trimmed.size() > 4 && trimmed.starts_with("[[") && trimmed.ends_with("]]");
}

std::optional<double> ParseNumber(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsWholeNumber(double number) { return std::isfinite(number) && number == std::trunc(number); }

bool MatchesInt(const json::Value& value) {
  if (value.is_integer() || value.is_bool()) return true;
  if (value.is_double()) return IsWholeNumber(value.as_double());
  if (!value.is_string()) return false;
  const auto number = ParseNumber(value.as_string());
  return number && IsWholeNumber(*number);
}

bool MatchesBool(const json::Value& value) {
  if (value.is_bool()) return true;
  if (value.is_number()) return value.ToDouble() == 0 || value.ToDouble() == 1;
  static constexpr std::string_view kWords[] = {"0",   "1",  "f", "false", "n", "no",
                                                "off", "on", "t", "true",  "y", "yes"};
  if (!value.is_string()) return false;
  std::string word(Trim(value.as_string()));
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::binary_search(kWords, std::string_view(word));
}

bool MatchesLiteral(const json::Value& value, const std::vector<std::string_view>& choices) {
  if (!value.is_string()) return false;
  return std::ranges::any_of(choices, [&](std::string_view choice) {
    return choice.size() >= 2 && choice.substr(1, choice.size() - 2) == value.as_string();
  });
}

constexpr std::string_view kArrays[] = {"Sequence", "frozenset", "list", "set", "tuple"};
constexpr std::string_view kObjects[] = {"Mapping", "OrderedDict", "dict"};

class Checker {
 public:
  // The path of the first part of `value` that no reading of `type` takes; empty when all fits.
  std::optional<std::string> Mismatch(const json::Value& value, std::string_view type) {
    if (IsDeferred(value)) return std::nullopt;
    const std::vector<std::string_view> choices = Split(type, '|');
    if (choices.size() > 1) return MismatchOfUnion(value, choices);
    const TypeExpression expression = ParseType(type);
    if (expression.head == "Optional") {
      return value.is_null() ? std::nullopt : Mismatch(value, expression.arguments[0]);
    }
    if (expression.head == "Union") return MismatchOfUnion(value, expression.arguments);
    if (std::ranges::binary_search(kArrays, expression.head))
      return MismatchOfArray(value, expression);
    if (std::ranges::binary_search(kObjects, expression.head)) {
      return MismatchOfObject(value, expression);
    }
    return Fits(value, expression) ? std::nullopt : std::optional<std::string>("");
  }

 private:
  static bool Fits(const json::Value& value, const TypeExpression& type) {
    if (type.head == "str" || type.head == "AnyHttpUrl") return value.is_string();
    if (type.head == "int") return MatchesInt(value);
    if (type.head == "float") {
      return value.is_number() || value.is_bool() ||
             (value.is_string() && ParseNumber(value.as_string()));
    }
    if (type.head == "bool") return MatchesBool(value);
    if (type.head == "None") return value.is_null();
    if (type.head == "datetime") return value.is_string() || value.is_number();
    if (type.head == "Literal") return MatchesLiteral(value, type.arguments);
    return true;  // Any, and classes whose fields the table does not know
  }

  std::optional<std::string> MismatchOfUnion(const json::Value& value,
                                             const std::vector<std::string_view>& choices) {
    std::optional<std::string> deepest;
    for (std::string_view choice : choices) {
      auto mismatch = Mismatch(value, choice);
      if (!mismatch) return std::nullopt;
      if (!deepest || mismatch->size() > deepest->size()) deepest = std::move(mismatch);
    }
    return deepest;
  }

  std::optional<std::string> MismatchOfArray(const json::Value& value, const TypeExpression& type) {
    if (!value.is_array()) return "";
    if (type.arguments.size() != 1) return std::nullopt;
    for (std::size_t i = 0; i < value.as_array().size(); ++i) {
      if (auto below = Mismatch(value.as_array()[i], type.arguments[0])) {
        return "[" + std::to_string(i) + "]" + *below;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> MismatchOfObject(const json::Value& value,
                                              const TypeExpression& type) {
    if (!value.is_object()) return "";
    if (type.arguments.size() != 2) return std::nullopt;
    for (const auto& [key, member] : value.as_object()) {
      if (auto below = Mismatch(member, type.arguments[1])) return "." + key + *below;
    }
    return std::nullopt;
  }
};

std::string_view KindName(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kNull:
      return "None";
    case json::Value::Kind::kBool:
      return "a bool";
    case json::Value::Kind::kInt:
    case json::Value::Kind::kBigInt:
      return "an int";
    case json::Value::Kind::kDouble:
      return "a float";
    case json::Value::Kind::kString:
      return "a string";
    case json::Value::Kind::kArray:
      return "a list";
    case json::Value::Kind::kObject:
      return "a dict";
  }
  return "a value";
}

// The bound of "ge=1,le=300" that `number` breaks, as text; empty when it breaks none.
std::string BrokenBound(std::string_view constraints, double number) {
  for (std::string_view bound : Split(constraints, ',')) {
    const auto equals = bound.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view kind = bound.substr(0, equals);
    const auto limit = ParseNumber(bound.substr(equals + 1));
    if (!limit) continue;
    const std::string shown(bound.substr(equals + 1));
    if (kind == "ge" && !(number >= *limit)) return "at least " + shown;
    if (kind == "gt" && !(number > *limit)) return "greater than " + shown;
    if (kind == "le" && !(number <= *limit)) return "at most " + shown;
    if (kind == "lt" && !(number < *limit)) return "less than " + shown;
  }
  return {};
}

class ConfigWarnings {
 public:
  ConfigWarnings(const NodeType& type, const ConfigSpans& spans, std::string_view node_id,
                 std::vector<Diagnostic>& out)
      : type_(type), spans_(spans), node_id_(node_id), out_(out) {}

  void Check(const json::Object& config) {
    for (const auto& [key, value] : config) {
      const NodeField* field = type_.FindField(key);
      if (field == nullptr) {
        WarnUnknown(key);
      } else {
        CheckValue(*field, value);
      }
    }
    for (const NodeField& field : type_.fields) {
      if (field.required && !config.Contains(field.name)) WarnMissing(field);
    }
  }

 private:
  SourceSpan NameSpan(std::string_view field) const {
    const auto* found = Find(field);
    return found != nullptr ? found->name_span : spans_.type;
  }
  SourceSpan ValueSpan(std::string_view field) const {
    const auto* found = Find(field);
    return found != nullptr ? found->value_span : spans_.type;
  }
  const ConfigSpans::Field* Find(std::string_view field) const {
    const auto found =
        std::find_if(spans_.fields.rbegin(), spans_.fields.rend(),
                     [&](const ConfigSpans::Field& each) { return each.name == field; });
    return found != spans_.fields.rend() ? &*found : nullptr;
  }

  void Warn(ErrorCode code, SourceSpan span, std::string message, std::string hint) {
    out_.push_back({.code = code,
                    .severity = Severity::kWarning,
                    .span = span,
                    .message = "node '" + std::string(node_id_) + "': " + std::move(message),
                    .hint = std::move(hint)});
  }

  void WarnUnknown(const std::string& key) {
    std::vector<std::string_view> names;
    for (const NodeField& field : type_.fields) names.push_back(field.name);
    const std::string_view nearest = Nearest(key, names);
    Warn(errors::kConfigUnknownField, NameSpan(key),
         std::string(type_.name) + " has no field '" + key + "'; it is ignored",
         nearest.empty() ? "remove it, or look at the fields of " + std::string(type_.name)
                         : "did you mean '" + std::string(nearest) + "'?");
  }

  void WarnMissing(const NodeField& field) {
    Warn(errors::kConfigMissingField, spans_.type,
         std::string(type_.name) + " requires the field '" + std::string(field.name) + "'",
         "add " + std::string(field.name) + "=... (" + std::string(field.type) + ")");
  }

  void CheckValue(const NodeField& field, const json::Value& value) {
    // Tools and schemas are checked where they are lowered.
    if (field.name == "workflow_tools" || field.name == "response_format") return;
    if (const auto where = Checker().Mismatch(value, field.type)) {
      const std::string place = std::string(field.name) + *where;
      std::string message = "field '" + place + "' of " + std::string(type_.name);
      if (where->empty()) {
        message += " takes " + std::string(field.type) + ", not " + Shown(value);
      } else {
        message += " does not fit " + std::string(field.type);
      }
      Warn(errors::kConfigWrongType, ValueSpan(field.name), std::move(message),
           "write a value of that type");
      return;
    }
    CheckBounds(field, value);
  }

  // The value itself when it is a short string that may be a mistyped choice, else its kind.
  static std::string Shown(const json::Value& value) {
    if (value.is_string() && value.as_string().size() <= 40) return "'" + value.as_string() + "'";
    return std::string(KindName(value));
  }

  void CheckBounds(const NodeField& field, const json::Value& value) {
    if (field.constraints.empty() || !value.is_number()) return;
    const std::string broken = BrokenBound(field.constraints, value.ToDouble());
    if (broken.empty()) return;
    Warn(errors::kConfigOutOfRange, ValueSpan(field.name),
         "field '" + std::string(field.name) + "' of " + std::string(type_.name) + " must be " +
             broken,
         "write a value that is " + broken);
  }

  const NodeType& type_;
  const ConfigSpans& spans_;
  std::string_view node_id_;
  std::vector<Diagnostic>& out_;
};

}  // namespace

bool HasTemplate(std::string_view text) {
  const auto open = text.find("{{");
  return open != std::string_view::npos && text.find("}}", open) != std::string_view::npos;
}

std::string StepTypeFault(std::string_view type) {
  if (type.empty()) return "a step of a SubWorkflowNode needs a type";
  if (HasTemplate(type) || FindNodeType(type) != nullptr) return "";
  return "a step of a SubWorkflowNode names the type '" + std::string(type) +
         "', which does not exist";
}

std::string StepTypeHint(std::string_view type) {
  std::string hint = NodeTypeHint(type);
  return hint.empty() ? "name a built-in node type" : hint;
}

void CheckConfig(const NodeType& type, const json::Object& config, const ConfigSpans& spans,
                 std::string_view node_id, std::vector<Diagnostic>& out) {
  ConfigWarnings(type, spans, node_id, out).Check(config);
}

}  // namespace caisson::workflow
