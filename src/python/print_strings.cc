// SPDX-License-Identifier: Apache-2.0
// The part of ExprPrinter that prints constants and f-strings.
#include <algorithm>

#include "python/print_expr.h"
#include "python/print_literals.h"

namespace caisson::python {
namespace {

// Python before 3.12, and readers that look for the end of a replacement field by its characters,
// would trip over these inside a string inside a field.
constexpr std::string_view kHiddenInField = ":!{}[]";
constexpr std::string_view kHiddenInFormatSpec = "{}";

// The literal text of the f-string, to choose a quote by.
std::string LiteralText(List<Expr*> values) {
  std::string text;
  for (const Expr* value : values) {
    if (const auto* constant = IsA<Constant>(value)) text += constant->text;
  }
  return text;
}

bool HasUnicodePrefix(const Expr* value) {
  const auto* constant = IsA<Constant>(value);
  return constant != nullptr && constant->unicode_prefix;
}

}  // namespace

void ExprPrinter::PrintConstant(const Constant& constant) {
  switch (constant.constant) {
    case ConstantKind::kNone:
      out_ += "None";
      return;
    case ConstantKind::kTrue:
      out_ += "True";
      return;
    case ConstantKind::kFalse:
      out_ += "False";
      return;
    case ConstantKind::kEllipsis:
      out_ += "...";
      return;
    case ConstantKind::kStr:
    case ConstantKind::kBytes:
      break;
    default:
      AppendNumber(out_, constant);
      return;
  }
  const bool is_bytes = constant.constant == ConstantKind::kBytes;
  const Escaping escaping{
      .quote = ChooseQuote(constant.text),
      .as_hex = field_ == FieldSyntax::kNone ? std::string_view() : kHiddenInField};
  if (is_bytes) out_ += 'b';
  if (constant.unicode_prefix) out_ += 'u';
  out_ += escaping.quote;
  if (is_bytes) {
    AppendEscapedBytes(out_, constant.text, escaping);
  } else {
    AppendEscapedText(out_, constant.text, escaping);
  }
  out_ += escaping.quote;
}

// One that no enclosing f-string uses, while there is one: Python 3.12 does not mind, others do.
char ExprPrinter::ChooseQuote(std::string_view text) const {
  if (single_quote_taken_ == double_quote_taken_) return PreferredQuote(text);
  return single_quote_taken_ ? '"' : '\'';
}

// Text that the author prefixed with u keeps it only as a literal of its own, joined to the
// f-string around it by standing next to it.
void ExprPrinter::PrintJoinedStr(List<Expr*> values) {
  std::size_t start = 0;
  bool printed = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!HasUnicodePrefix(values[i])) continue;
    if (i > start) {
      PrintJoinedRun(values.subspan(start, i - start));
      out_ += ' ';
      printed = true;
    }
    PrintConstant(*As<Constant>(values[i]));
    start = i + 1;
    // At least one part has to be an f-string.
    if (start < values.size() || !printed) out_ += ' ';
  }
  if (start < values.size() || !printed) PrintJoinedRun(values.subspan(start));
}

void ExprPrinter::PrintJoinedRun(List<Expr*> values) {
  const char quote = ChooseQuote(LiteralText(values));
  const bool nested = field_ != FieldSyntax::kNone;
  const Escaping escaping{.quote = quote,
                          .as_hex = nested ? kHiddenInField : std::string_view(),
                          .double_braces = !nested};
  out_ += 'f';
  out_ += quote;
  for (const Expr* value : values) {
    if (const auto* constant = IsA<Constant>(value)) {
      AppendEscapedText(out_, constant->text, escaping);
    } else if (const auto* field = IsA<FormattedValue>(value)) {
      // Two braces would be a literal one.
      PrintField(*field, quote, false);
    }
  }
  out_ += quote;
}

void ExprPrinter::PrintField(const FormattedValue& field, char quote, bool braces_may_meet) {
  const FieldSyntax outside = field_;
  const bool single_taken = single_quote_taken_;
  const bool double_taken = double_quote_taken_;
  out_ += '{';
  const std::size_t start = out_.size();
  field_ = FieldSyntax::kBare;
  (quote == '"' ? double_quote_taken_ : single_quote_taken_) = true;
  Print(*field.value, Precedence::kTest);
  if (!braces_may_meet && out_[start] == '{') out_.insert(start, " ");
  single_quote_taken_ = single_taken;
  double_quote_taken_ = double_taken;
  field_ = outside;
  if (field.conversion > 0) {
    out_ += '!';
    out_ += static_cast<char>(field.conversion);
  }
  if (field.format_spec != nullptr) {
    out_ += ':';
    PrintFormatSpec(*field.format_spec, quote);
  }
  out_ += '}';
}

void ExprPrinter::PrintFormatSpec(const Expr& spec, char quote) {
  const auto* joined = IsA<JoinedStr>(&spec);
  if (joined == nullptr) return;
  const Escaping escaping{.quote = quote, .as_hex = kHiddenInFormatSpec};
  bool after_empty_text = false;
  for (const Expr* value : joined->values) {
    if (const auto* constant = IsA<Constant>(value)) {
      AppendEscapedText(out_, constant->text, escaping);
      after_empty_text = constant->text.empty();
    } else if (const auto* field = IsA<FormattedValue>(value)) {
      // Here two braces are no literal one, but CPython's tokenizer leaves an empty text before
      // them.
      PrintField(*field, quote, after_empty_text);
      after_empty_text = false;
    }
  }
}

}  // namespace caisson::python
