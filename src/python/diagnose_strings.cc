// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"
#include "python/literals.h"

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

// Values of literals are worked out as soon as the literal is read, and may be what is wrong.

D::Node* D::NumberToken() {
  const std::size_t start = pos_;
  if (!Tok(kNumber)) return nullptr;
  const Token& token = tokens_[start];
  Constant value{};
  std::size_t digits = 0;
  if (!DecodeNumber(TextOf(token), arena_, value, digits)) {
    return RaiseAt({token.line, 0, token.end_line, 0}, TooManyDigits(digits));
  }
  Node* node = Make(ExprKind::kConstant, start);
  node->constant = value.constant;
  return node;
}

D::Node* D::StringToken() {
  const std::size_t start = pos_;
  if (!Tok(kString)) return nullptr;
  const StringSpelling spelling = SplitString(TextOf(tokens_[start]));
  if (const auto error = DecodeString(spelling, arena_, decoded_)) return RaiseHere(*error);
  Node* node = Make(ExprKind::kConstant, start);
  node->constant = spelling.bytes ? ConstantKind::kBytes : ConstantKind::kStr;
  return node;
}

D::Node* D::Strings() { return Remember(Memo::kStrings, &D::StringsBody); }

D::Node* D::StringsBody() {
  const std::size_t start = pos_;
  bool formatted = false;
  bool bytes = false;
  bool text = false;
  for (;;) {
    if (FString()) {
      formatted = true;
    } else if (Node* string = StringToken()) {
      (string->constant == ConstantKind::kBytes ? bytes : text) = true;
    } else {
      break;
    }
  }
  if (pos_ == start || raised_) return nullptr;
  if (bytes && (text || formatted)) return RaiseHere(kMixedBytes);
  Node* node = Make(formatted ? ExprKind::kJoinedStr : ExprKind::kConstant, start);
  node->constant = ConstantKind::kStr;
  return node;
}

D::Node* D::FString() {
  const std::size_t start = pos_;
  if (!Tok(kFStringStart)) return nullptr;
  const std::string_view prefix = TextOf(Last());
  const bool raw = (prefix[0] | 32) == 'r' || (prefix[1] | 32) == 'r';
  std::vector<Node*> pieces = ManyNodes(&D::FStringPiece);
  if (!Tok(kFStringEnd)) {
    pos_ = start;
    return nullptr;
  }
  for (const Node* piece : pieces) {
    if (raw || piece->kind != ExprKind::kConstant) continue;
    if (const auto error = DecodeStringBody(piece->id, arena_, decoded_)) return RaiseHere(*error);
  }
  return Matched(start);
}

D::Node* D::FStringPiece() {
  if (Node* field = ReplacementField()) return field;
  return FStringText();
}

D::Node* D::FStringText() {
  const std::size_t start = pos_;
  if (!Tok(kFStringMiddle)) return nullptr;
  Node* node = Make(ExprKind::kConstant, start);
  node->constant = ConstantKind::kStr;
  node->id = TextOf(Last());
  return node;
}

D::Node* D::Conversion() {
  const std::size_t start = pos_;
  if (!Tok(kExclamation) || !Tok(kName)) {
    pos_ = start;
    return nullptr;
  }
  const Token& mark = tokens_[start];
  const Token& name = Last();
  if (mark.line != name.line || mark.end_column != name.column) {
    return RaiseAt(Range(SpanOf(mark), SpanOf(name)), kConversionPlace);
  }
  return Matched(start);
}

D::Node* D::FormatSpec() {
  const std::size_t start = pos_;
  if (!Tok(kColon)) return nullptr;
  Many(&D::FStringPieceOfSpec, 0);
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::FStringPieceOfSpec() { return First({&D::FStringText, &D::ReplacementField}); }

D::Node* D::ReplacementField() {
  const std::size_t start = pos_;
  if (!Peek(kLBrace)) return nullptr;
  if (FieldStart(true, false)) {
    const std::size_t mark = pos_;
    const bool converted = Conversion() != nullptr;
    Maybe(&D::FormatSpec);
    if (Tok(kRBrace)) {
      const Token& name = tokens_[mark + (converted ? 1 : 0)];
      if (!converted || IsConversion(TextOf(name))) return Matched(start);
      return RaiseAtToken(name, BadConversion(TextOf(name)));
    }
  }
  pos_ = start;
  if (explaining_) InvalidReplacementField();
  pos_ = start;
  return nullptr;
}

// '{' and the expression, then what may follow of '=' and '!' NAME.
bool D::FieldStart(bool with_debug, bool with_conversion) {
  if (!Tok(kLBrace) || !YieldOrStarExpressions()) return false;
  if (with_debug) Tok(kEqual);
  if (with_conversion) Maybe(&D::Conversion);
  return !raised_;
}

D::Node* D::InvalidReplacementField() {
  const std::size_t start = pos_;
  if (!Tok(kLBrace)) return nullptr;
  for (const auto& [kind, message] :
       {std::pair{kEqual, "f-string: valid expression required before '='"},
        std::pair{kExclamation, "f-string: valid expression required before '!'"},
        std::pair{kColon, "f-string: valid expression required before ':'"},
        std::pair{kRBrace, "f-string: valid expression required before '}'"}}) {
    if (Tok(kind)) return RaiseAtToken(Last(), message);
  }
  if (!Ahead(&D::YieldOrStarExpressions)) {
    return RaiseOnNext("f-string: expecting a valid expression after '{'");
  }
  pos_ = start;
  if (FieldStart(false, false) && !PeekAny({kEqual, kExclamation, kColon, kRBrace})) {
    return RaiseOnNext("f-string: expecting '=', or '!', or ':', or '}'");
  }
  pos_ = start;
  if (FieldStart(false, false) && Tok(kEqual) && !PeekAny({kExclamation, kColon, kRBrace})) {
    return RaiseOnNext("f-string: expecting '!', or ':', or '}'");
  }
  pos_ = start;
  if (FieldStart(true, false) && Tok(kExclamation)) {
    if (PeekAny({kColon, kRBrace})) return RaiseOnNext("f-string: missing conversion character");
    if (!Peek(kName)) return RaiseOnNext("f-string: invalid conversion character");
  }
  pos_ = start;
  if (FieldStart(true, true) && !PeekAny({kColon, kRBrace})) {
    return RaiseOnNext("f-string: expecting ':' or '}'");
  }
  pos_ = start;
  if (FieldStart(true, true) && FormatSpec() && !Peek(kRBrace)) {
    return RaiseOnNext("f-string: expecting '}', or format specs");
  }
  pos_ = start;
  if (FieldStart(true, true) && !Peek(kRBrace)) return RaiseOnNext("f-string: expecting '}'");
  return nullptr;
}

}  // namespace caisson::python
