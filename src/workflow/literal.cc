// SPDX-License-Identifier: Apache-2.0
#include "workflow/literal.h"

#include <cmath>
#include <utility>

#include "errors/workflow.h"
#include "workflow/ir.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

using python::ConstantKind;
using python::ExprKind;
using python::UnaryOperator;

// As many as the JSON reader takes back.
constexpr std::size_t kMaxIntegerDigits = 4300;

std::string_view PythonTypeName(ConstantKind kind) {
  switch (kind) {
    case ConstantKind::kBytes:
      return "bytes";
    case ConstantKind::kComplex:
      return "complex";
    default:
      return "ellipsis";
  }
}

int HexDigit(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

// Decimal text of a hexadecimal number; empty when it has more digits than JSON may carry.
std::string DecimalFromHex(std::string_view hex) {
  constexpr std::uint64_t kBase = 1'000'000'000;
  if (hex.size() > kMaxIntegerDigits) return {};
  std::vector<std::uint32_t> chunks;  // little endian, base 10^9
  for (const char c : hex) {
    std::uint64_t carry = static_cast<std::uint64_t>(HexDigit(c));
    for (std::uint32_t& chunk : chunks) {
      const std::uint64_t value = std::uint64_t{chunk} * 16 + carry;
      chunk = static_cast<std::uint32_t>(value % kBase);
      carry = value / kBase;
    }
    if (carry != 0) chunks.push_back(static_cast<std::uint32_t>(carry));
  }
  std::string digits;
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    const std::string part = std::to_string(*chunk);
    if (!digits.empty()) digits.append(9 - part.size(), '0');
    digits += part;
  }
  if (digits.size() > kMaxIntegerDigits) return {};
  return digits.empty() ? "0" : digits;
}

class Lowering {
 public:
  Lowering(std::string_view where, CredentialPolicy credentials, const ModelImports* models,
           std::vector<Diagnostic>& out)
      : where_(where), credentials_(credentials), models_(models), out_(out) {}

  std::optional<json::Value> Lower(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kConstant:
        return LowerConstant(*python::As<python::Constant>(&expr), false);
      case ExprKind::kList:
        return LowerList(python::As<python::ListExpr>(&expr)->elts);
      case ExprKind::kTuple:
        return LowerList(python::As<python::Tuple>(&expr)->elts);
      case ExprKind::kDict:
        return LowerDict(*python::As<python::Dict>(&expr));
      case ExprKind::kUnaryOp:
        return LowerSigned(*python::As<python::UnaryOp>(&expr));
      case ExprKind::kName:
        return LowerName(*python::As<python::Name>(&expr));
      default:
        return NotALiteral(expr);
    }
  }

 private:
  std::optional<json::Value> LowerConstant(const python::Constant& constant, bool negative) {
    switch (constant.constant) {
      case ConstantKind::kNone:
        return json::Value(nullptr);
      case ConstantKind::kTrue:
      case ConstantKind::kFalse:
        return json::Value(constant.constant == ConstantKind::kTrue);
      case ConstantKind::kInt:
        return json::Value(negative ? -constant.integer : constant.integer);
      case ConstantKind::kBigInt:
        return LowerBigInt(constant, negative);
      case ConstantKind::kFloat:
        return LowerFloat(constant, negative);
      case ConstantKind::kStr:
        return LowerString(constant);
      default:
        Report(errors::kWorkflowLiteralRequired, constant.span,
               ": unsupported config literal of type " +
                   std::string(PythonTypeName(constant.constant)),
               "write a string, a number, True, False, None, a list or a dict");
        return std::nullopt;
    }
  }

  std::optional<json::Value> LowerBigInt(const python::Constant& constant, bool negative) {
    std::string digits = DecimalFromHex(constant.text);
    if (digits.empty()) {
      ReportOurs(errors::kWorkflowLiteralNotJson, constant.span,
                 ": an integer literal may have at most 4300 decimal digits",
                 "write the number as a string");
      return std::nullopt;
    }
    return json::Value::Integer(negative ? "-" + digits : digits);
  }

  std::optional<json::Value> LowerFloat(const python::Constant& constant, bool negative) {
    if (!std::isfinite(constant.number)) {
      ReportOurs(errors::kWorkflowLiteralNotJson, constant.span,
                 ": this number is too large for a float, and JSON has no infinity",
                 "write a number below 1.8e308, or a string");
      return std::nullopt;
    }
    return json::Value(negative ? -constant.number : constant.number);
  }

  std::optional<json::Value> LowerString(const python::Constant& constant) {
    if (!CheckCredential(constant, false)) return std::nullopt;
    if (!CheckText(constant)) return std::nullopt;
    return json::Value(constant.text);
  }

  // `key`: the peer looks at values only.
  bool CheckCredential(const python::Constant& constant, bool key) {
    if (credentials_ == CredentialPolicy::kAllow) return true;
    const bool peer_refuses = !key && HasCredential(constant.text);
    const bool refused = peer_refuses || (credentials_ == CredentialPolicy::kForbidWide &&
                                          HasCredential(constant.text, true));
    if (!refused) return true;
    Report(errors::kWorkflowCredentialNotAllowed, constant.span,
           ": '[[credential]]' placeholders are not allowed in CodeNode config",
           "give the credential to a built-in node; isolated code never sees secrets");
    out_.back().peer_accepts = !peer_refuses;
    return false;
  }

  bool CheckText(const python::Constant& constant) {
    if (!HasLoneSurrogate(constant.text)) return true;
    ReportOurs(errors::kWorkflowLiteralNotJson, constant.span,
               ": this string holds a lone surrogate, which JSON cannot carry",
               "write the character itself or as \\U00012345");
    return false;
  }

  std::optional<json::Value> LowerList(python::List<python::Expr*> elements) {
    json::Array array;
    array.reserve(elements.size());
    bool ok = true;
    for (const python::Expr* element : elements) {
      std::optional<json::Value> value = Lower(*element);
      ok = ok && value.has_value();
      if (ok) array.push_back(*std::move(value));
    }
    if (!ok) return std::nullopt;
    return json::Value(std::move(array));
  }

  std::optional<json::Value> LowerDict(const python::Dict& dict) {
    json::Object object;
    object.Reserve(dict.keys.size());
    bool ok = true;
    for (std::size_t i = 0; i < dict.keys.size(); ++i) {
      const bool key_ok = CheckKey(dict, i);
      if (dict.keys[i] == nullptr) {
        ok = false;
        continue;
      }
      std::optional<json::Value> value = Lower(*dict.values[i]);
      ok = ok && key_ok && value.has_value();
      if (!ok) continue;
      const std::string_view key = python::As<python::Constant>(dict.keys[i])->text;
      if (object.Contains(key)) WarnDuplicate(*dict.keys[i], key);
      object.Set(key, *std::move(value));
    }
    if (!ok) return std::nullopt;
    return json::Value(std::move(object));
  }

  bool CheckKey(const python::Dict& dict, std::size_t index) {
    const python::Expr* key = dict.keys[index];
    if (key == nullptr) {
      RepeatWithoutModels(dict, index);
      Report(errors::kWorkflowLiteralRequired, dict.values[index]->span,
             ": dict unpacking is not allowed in config", "write the entries out");
      out_.back().peer_line = dict.span.line;
      return false;
    }
    const auto* constant = python::IsA<python::Constant>(key);
    if (constant == nullptr || constant->constant != ConstantKind::kStr) {
      RepeatWithoutModels(dict, index);
      Report(errors::kWorkflowLiteralRequired, key->span,
             ": config dict keys must be string literals", "put the key in quotes");
      return false;
    }
    if (constant->text.starts_with(kKindMarker)) {
      ReportOurs(errors::kWorkflowReservedKey, key->span,
                 ": keys that begin with '" + std::string(kKindMarker) + "' are reserved",
                 "choose another key; tools and models are written as WorkflowTool(...) and names");
      return false;
    }
    return CheckCredential(*constant, true) && CheckText(*constant);
  }

  // On a key that it refuses, the peer checks the whole dict again by the rules that know no
  // models, and so stumbles over a model's name among the earlier values.
  void RepeatWithoutModels(const python::Dict& dict, std::size_t end) {
    if (models_ == nullptr) return;
    std::vector<Diagnostic> repeated;
    Lowering strict(where_, credentials_, nullptr, repeated);
    for (std::size_t i = 0; i < end && repeated.empty(); ++i) strict.Lower(*dict.values[i]);
    if (repeated.empty() || repeated.front().peer_accepts) return;
    for (const Diagnostic& known : out_) {
      if (known.span == repeated.front().span) return;
    }
    out_.push_back(std::move(repeated.front()));
  }

  std::optional<json::Value> LowerSigned(const python::UnaryOp& unary) {
    const bool minus = unary.op == UnaryOperator::kUSub;
    const auto* operand = python::IsA<python::Constant>(unary.operand);
    if ((!minus && unary.op != UnaryOperator::kUAdd) || operand == nullptr) {
      return NotALiteral(unary);
    }
    switch (operand->constant) {
      case ConstantKind::kInt:
      case ConstantKind::kBigInt:
      case ConstantKind::kFloat:
        return LowerConstant(*operand, minus);
      case ConstantKind::kTrue:
      case ConstantKind::kFalse:
        Add(errors::kWorkflowLiteralUnevaluable, unary.span,
            "config value is not a JSON literal: a sign may stand before a number only",
            "write the number that is meant, or the boolean without the sign");
        return std::nullopt;
      default:
        return NotALiteral(unary);
    }
  }

  std::optional<json::Value> LowerName(const python::Name& name) {
    if (models_ != nullptr) {
      ModelReference reference = LowerModelName(name, *models_, out_);
      if (reference.marker) return std::move(reference.marker);
      if (reference.failed) return std::nullopt;
    }
    return NotALiteral(name);
  }

  std::nullopt_t NotALiteral(const python::Expr& expr) {
    Report(errors::kWorkflowLiteralRequired, expr.span,
           ": config values must be JSON literals, '{{state.path}}' templates, or '[[credential]]' "
           "placeholders",
           LiteralHint(expr));
    return std::nullopt;
  }

  static std::string LiteralHint(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kJoinedStr:
        return "write a plain string; '{{path}}' inside it is filled in at run time";
      case ExprKind::kName:
        return "write the value itself; names of variables mean nothing here";
      default:
        return "write the finished value; a code node can compute it at run time";
    }
  }

  void WarnDuplicate(const python::Expr& key, std::string_view text) {
    Report(errors::kWorkflowDuplicateKey, key.span,
           ": key '" + std::string(text) + "' is given twice; the last value counts",
           "remove one of them");
    out_.back().severity = Severity::kWarning;
    out_.back().peer_accepts = true;
  }

  void Report(ErrorCode code, SourceSpan span, std::string_view text, std::string_view hint) {
    Add(code, span, std::string(where_) + std::string(text), hint);
  }
  void ReportOurs(ErrorCode code, SourceSpan span, std::string_view text, std::string_view hint) {
    Report(code, span, text, hint);
    out_.back().peer_accepts = true;
  }
  void Add(ErrorCode code, SourceSpan span, std::string message, std::string_view hint) {
    out_.push_back({.code = code,
                    .span = span,
                    .message = std::move(message),
                    .hint = std::string(hint),
                    .peer_line = span.line});
  }

  std::string_view where_;
  CredentialPolicy credentials_;
  const ModelImports* models_;
  std::vector<Diagnostic>& out_;
};

}  // namespace

std::optional<json::Value> LowerLiteral(const python::Expr& expr, std::string_view where,
                                        CredentialPolicy credentials, const ModelImports* models,
                                        std::vector<Diagnostic>& out) {
  return Lowering(where, credentials, models, out).Lower(expr);
}

ModelReference LowerModelName(const python::Name& name, const ModelImports& models,
                              std::vector<Diagnostic>& out) {
  const auto imported = models.find(name.id);
  if (imported == models.end()) return {};
  const auto& [module, attribute] = imported->second;
  const ModelResult found = FindModel(module, attribute);
  if (found.outcome == ModelLookup::kNoSuchModule) {
    const std::string from(module);
    out.push_back({.code = errors::kWorkflowUnknownModule,
                   .span = name.span,
                   .message = "cannot import '" + from + "." + std::string(attribute) + "'; '" +
                              from + "' is not an available Orcheo module",
                   .hint = "correct the module's name in the import"});
    return {.marker = std::nullopt, .failed = true};
  }
  if (found.outcome == ModelLookup::kNotAModel || attribute == "BaseModel") return {};
  json::Object marker;
  marker.Set(kKindMarker, "pydantic_model");
  marker.Set("module", module);
  marker.Set("name", attribute);
  return {.marker = json::Value(std::move(marker)), .failed = false};
}

std::optional<std::string_view> StringLiteral(const python::Expr& expr) {
  const auto* constant = python::IsA<python::Constant>(&expr);
  if (constant == nullptr || constant->constant != ConstantKind::kStr) return std::nullopt;
  return constant->text;
}

bool HasCredential(std::string_view text, bool across_lines) {
  constexpr auto kNone = std::string_view::npos;
  std::size_t open = text.find("[[");
  while (open != kNone) {
    // At least one character stands between the brackets.
    const std::size_t close = text.find("]]", open + 3);
    if (close == kNone) return false;
    if (across_lines) return true;
    const std::size_t newline = text.find('\n', open + 2);
    if (newline == kNone || newline > close) return true;
    open = text.find("[[", newline + 1);
  }
  return false;
}

bool HasLoneSurrogate(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xED' && static_cast<unsigned char>(text[i + 1]) >= 0xA0) return true;
  }
  return false;
}

}  // namespace caisson::workflow
