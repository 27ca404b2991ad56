// SPDX-License-Identifier: Apache-2.0
// String literals, f-strings and their implicit concatenation. What CPython 3.12 does with the
// pieces of an f-string (which empty ones stay, where they lie, that a debug text is decoded once
// more, that a raw f-string's format spec is not raw) is part of the AST and reproduced here.
#include <algorithm>

#include "python/literals.h"
#include "python/parser_core.h"

namespace caisson::python {

using enum TokenKind;

namespace {

bool IsText(const Expr* expr) { return expr->kind == ExprKind::kConstant; }
bool IsEmptyText(const Expr* expr) { return IsText(expr) && As<Constant>(expr)->text.empty(); }

// `text` up to each '#', through the line's end.
std::string WithoutComments(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') i = std::min(text.find('\n', i), text.size());
    if (i < text.size()) out.push_back(text[i]);
  }
  return out;
}

}  // namespace

Expr* Parser::ParseStrings() {
  const Token* first = t_;
  if (At(kString) && t_[1].kind != kString && t_[1].kind != kFStringStart) {
    return ParsePlainString();
  }
  ListBuilder<Expr> parts(*this);
  while (At(kString) || At(kFStringStart)) {
    parts.Add(At(kString) ? ParsePlainString() : ParseFString());
  }
  if (failed_) return Nowhere();
  return Concatenate(first, parts.Finish());
}

Expr* Parser::ParsePlainString() {
  const Token& token = *t_++;
  const StringSpelling spelling = SplitString(Text(token));
  Constant* constant = Make<Constant>(SpanOf(token));
  constant->constant = spelling.bytes ? ConstantKind::kBytes : ConstantKind::kStr;
  constant->unicode_prefix = spelling.unicode;
  if (const auto error = DecodeString(spelling, arena_, constant->text)) {
    FailWith(SyntaxError::Type::kSyntax, *error, SpanOf(token));
  }
  return constant;
}

// ---- f-strings ---------------------------------------------------------------------------------

Expr* Parser::MakeText(SourceSpan span, std::string_view text) {
  Constant* constant = Make<Constant>(span);
  constant->constant = ConstantKind::kStr;
  constant->text = text;
  return constant;
}

void Parser::DecodeText(Expr* text, SourceSpan blame) {
  Constant* constant = static_cast<Constant*>(text);
  if (const auto error = DecodeStringBody(constant->text, arena_, constant->text)) {
    FailWith(SyntaxError::Type::kSyntax, *error, blame);
  }
}

Expr* Parser::ParseFString() {
  const Token* first = t_++;
  const std::string_view prefix = Text(*first);
  const bool raw = (prefix[0] | 32) == 'r' || (prefix[1] | 32) == 'r';
  ListBuilder<Expr> values(*this);
  while (!At(kFStringEnd) && !failed_) ParseFStringPiece(values);
  Expect(kFStringEnd);
  if (failed_) return Nowhere();
  std::vector<Expr*> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Expr* value = values[i];
    if (IsText(value)) {
      if (!raw) DecodeText(value, SpanOf(t_[-1]));
      if (IsEmptyText(value)) continue;
    }
    kept.push_back(value);
  }
  JoinedStr* joined = Make<JoinedStr>(SpanFrom(first));
  joined->values = arena_.Copy<Expr*>(kept);
  return joined;
}

void Parser::ParseFStringPiece(ListBuilder<Expr>& out) {
  if (At(kFStringMiddle)) {
    out.Add(MakeText(SpanOf(*t_), Text(*t_)));
    ++t_;
  } else if (At(kLBrace)) {
    ParseField(out);
  } else {
    Fail();
  }
}

// A replacement field: one FormattedValue, after the text of its expression when it has a '='.
void Parser::ParseField(ListBuilder<Expr>& out) {
  const Token* brace = t_++;
  Expr* value = At(kYield) ? ParseYield() : ParseStarExpressions();
  const bool debug = Take(kEqual);
  const Token* expression_end = t_;
  const int conversion = At(kExclamation) ? ParseConversion() : -1;
  Expr* spec = At(kColon) ? ParseFormatSpec() : nullptr;
  Expect(kRBrace);
  if (failed_) return;
  FormattedValue* field = Make<FormattedValue>(SpanFrom(brace));
  field->value = value;
  field->conversion = conversion == -1 && debug && spec == nullptr ? 'r' : conversion;
  field->format_spec = spec;
  if (debug) {
    out.Add(MakeText({brace->line, brace->column + 1, expression_end->line, expression_end->column},
                     DebugText(*brace, *expression_end)));
  }
  out.Add(field);
}

int Parser::ParseConversion() {
  const Token& mark = *t_++;
  if (!At(kName)) {
    Fail();
    return -1;
  }
  const Token& name = *t_;
  if (mark.line != name.line || mark.end_column != name.column) {
    FailWith(SyntaxError::Type::kSyntax, kConversionPlace, Between(mark, name));
    return -1;
  }
  const std::string_view text = Identifier(name);
  if (!IsConversion(text)) {
    FailWith(SyntaxError::Type::kSyntax, BadConversion(text), SpanOf(name));
    return -1;
  }
  ++t_;
  return text[0];
}

Expr* Parser::ParseFormatSpec() {
  const DepthScope scope(*this);
  const Token* colon = t_++;
  ListBuilder<Expr> values(*this);
  while (!At(kRBrace) && !failed_) {
    const std::size_t before = values.size();
    const bool text = At(kFStringMiddle);
    ParseFStringPiece(values);
    if (text) DecodeText(values[before], SpanOf(t_[-1]));
  }
  JoinedStr* spec = Make<JoinedStr>(SpanFrom(colon));
  // Texts meet only before a field with a '=', whose tree CPython 3.12.1 fails to build.
  const List<Expr*> folded = FoldNeighbours(values.Finish());
  if (folded.size() != 1 || !IsEmptyText(folded[0])) spec->values = folded;
  return spec;
}

std::string_view Parser::DebugText(const Token& brace, const Token& end) {
  const std::string_view text = text_.substr(brace.end, end.begin - brace.end);
  if (text.find('#') == std::string_view::npos) return text;
  return arena_.Copy(WithoutComments(text));
}

// ---- concatenation -----------------------------------------------------------------------------

Expr* Parser::Concatenate(const Token* first, List<Expr*> parts) {
  bool bytes = false;
  bool text = false;
  bool formatted = false;
  ListBuilder<Expr> flat(*this);
  for (Expr* part : parts) {
    if (const auto* joined = IsA<JoinedStr>(part)) {
      formatted = true;
      for (Expr* value : joined->values) flat.Add(value);
    } else {
      (As<Constant>(part)->constant == ConstantKind::kBytes ? bytes : text) = true;
      flat.Add(part);
    }
  }
  if (bytes && (text || formatted)) {
    FailWith(SyntaxError::Type::kSyntax, kMixedBytes, SpanOf(*t_));
    return Nowhere();
  }
  if (parts.size() == 1 && !formatted) return parts[0];
  if (!formatted) {
    Expr* whole = FoldTexts(parts);
    whole->span = SpanFrom(first);
    return whole;
  }
  JoinedStr* joined = Make<JoinedStr>(SpanFrom(first));
  joined->values = WithoutEmptyTexts(FoldNeighbours(flat.Finish()));
  return joined;
}

List<Expr*> Parser::WithoutEmptyTexts(List<Expr*> parts) {
  if (std::none_of(parts.begin(), parts.end(), IsEmptyText)) return parts;
  ListBuilder<Expr> out(*this);
  for (Expr* part : parts) {
    if (!IsEmptyText(part)) out.Add(part);
  }
  return out.Finish();
}

// Joins the texts that meet.
List<Expr*> Parser::FoldNeighbours(List<Expr*> parts) {
  ListBuilder<Expr> out(*this);
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i + 1;
    if (IsText(parts[i])) {
      while (end < parts.size() && IsText(parts[end])) ++end;
    }
    out.Add(end - i > 1 ? FoldTexts(parts.subspan(i, end - i)) : parts[i]);
    i = end;
  }
  return out.Finish();
}

Expr* Parser::FoldTexts(List<Expr*> texts) {
  std::size_t size = 0;
  for (const Expr* text : texts) size += As<Constant>(text)->text.size();
  char* whole = arena_.NewArray<char>(std::max<std::size_t>(size, 1));
  char* at = whole;
  for (const Expr* text : texts) {
    const std::string_view part = As<Constant>(text)->text;
    at = std::copy(part.begin(), part.end(), at);
  }
  const SourceSpan& begin = texts.front()->span;
  const SourceSpan& end = texts.back()->span;
  Constant* folded = Make<Constant>({begin.line, begin.column, end.end_line, end.end_column});
  folded->constant = As<Constant>(texts.front())->constant;
  folded->unicode_prefix = As<Constant>(texts.front())->unicode_prefix;
  folded->text = {whole, size};
  return folded;
}

}  // namespace caisson::python
