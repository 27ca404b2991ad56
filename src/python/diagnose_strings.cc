// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::Strings() { return Remember(Memo::kStrings, &D::StringsBody); }

D::Node* D::StringsBody() {
  const std::size_t start = pos_;
  bool formatted = false;
  for (;;) {
    if (Tok(kString)) continue;
    if (!FString()) break;
    formatted = true;
  }
  if (pos_ == start || raised_) return nullptr;
  Node* node = Make(formatted ? ExprKind::kJoinedStr : ExprKind::kConstant, start);
  node->constant = ConstantKind::kStr;
  return node;
}

D::Node* D::FString() {
  const std::size_t start = pos_;
  if (!Tok(kFStringStart)) return nullptr;
  Many(&D::FStringPiece, 0);
  if (Tok(kFStringEnd)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::FStringPiece() {
  if (Node* field = ReplacementField()) return field;
  const std::size_t start = pos_;
  return Tok(kFStringMiddle) ? Matched(start) : nullptr;
}

D::Node* D::Conversion() {
  const std::size_t start = pos_;
  if (Tok(kExclamation) && Tok(kName)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::FormatSpec() {
  const std::size_t start = pos_;
  if (!Tok(kColon)) return nullptr;
  Many(&D::FStringPieceOfSpec, 0);
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::FStringPieceOfSpec() {
  const std::size_t start = pos_;
  return Tok(kFStringMiddle) ? Matched(start) : ReplacementField();
}

D::Node* D::ReplacementField() {
  const std::size_t start = pos_;
  if (!Peek(kLBrace)) return nullptr;
  if (FieldStart(true, true)) {
    Maybe(&D::FormatSpec);
    if (Tok(kRBrace)) return Matched(start);
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
