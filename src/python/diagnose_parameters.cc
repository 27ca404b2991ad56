// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"

#include <utility>

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::FunctionParameters() {
  const bool outer = std::exchange(in_lambda_, false);
  Node* node = AnyParameters();
  in_lambda_ = outer;
  return node;
}

D::Node* D::LambdaParameters() {
  const bool outer = std::exchange(in_lambda_, true);
  Node* node = AnyParameters();
  in_lambda_ = outer;
  return node;
}

D::Node* D::AnyParameters() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidParameters();
    pos_ = start;
  }
  Node* node = PlainParameters();
  if (node == nullptr) pos_ = start;
  return raised_ ? nullptr : node;
}

D::Node* D::PlainParameters() {
  const std::size_t start = pos_;
  if (SlashNoDefault()) {
    Many(&D::ParamNoDefault, 0);
    Many(&D::ParamWithDefault, 0);
    Maybe(&D::StarEtc);
    return Matched(start);
  }
  pos_ = start;
  if (SlashWithDefault()) {
    Many(&D::ParamWithDefault, 0);
    Maybe(&D::StarEtc);
    return Matched(start);
  }
  pos_ = start;
  if (Many(&D::ParamNoDefault, 1)) {
    Many(&D::ParamWithDefault, 0);
    Maybe(&D::StarEtc);
    return Matched(start);
  }
  pos_ = start;
  if (Many(&D::ParamWithDefault, 1)) {
    Maybe(&D::StarEtc);
    return Matched(start);
  }
  pos_ = start;
  return StarEtc();
}

// ---- single parameters -------------------------------------------------------------------------

D::Node* D::Annotation() {
  const std::size_t start = pos_;
  if (!in_lambda_ && Tok(kColon) && Expression()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::Param() {
  const std::size_t start = pos_;
  if (!Tok(kName)) return nullptr;
  Maybe(&D::Annotation);
  return raised_ ? nullptr : Make(ExprKind::kName, start);
}

D::Node* D::Default() {
  const std::size_t start = pos_;
  if (Tok(kEqual) && Expression()) return Matched(start);
  pos_ = start;
  if (explaining_ && Tok(kEqual)) {
    const Token& equal = Last();
    if (PeekAny({kRParen, kComma})) {
      RaiseAtToken(equal, "expected default value expression");
    }
  }
  pos_ = start;
  return nullptr;
}

bool D::ParamEnd() { return Tok(kComma) || Peek(in_lambda_ ? kColon : kRParen); }

D::Node* D::ParamNoDefault() {
  const std::size_t start = pos_;
  Node* node = Param();
  if (node != nullptr && ParamEnd()) return node;
  pos_ = start;
  return nullptr;
}

D::Node* D::ParamNoDefaultStar() {
  const std::size_t start = pos_;
  if (!in_lambda_ && Tok(kName) && Tok(kColon) && StarExpression() && ParamEnd()) {
    return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::ParamWithDefault() {
  const std::size_t start = pos_;
  if (Param() && Default() && ParamEnd()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ParamMaybeDefault() {
  const std::size_t start = pos_;
  if (Param()) {
    Maybe(&D::Default);
    if (ParamEnd()) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

// ---- '/' ---------------------------------------------------------------------------------------

bool D::SlashEnd() { return Tok(kSlash) && ParamEnd(); }

D::Node* D::SlashNoDefault() {
  const std::size_t start = pos_;
  if (Many(&D::ParamNoDefault, 1) && SlashEnd()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::SlashWithDefault() {
  const std::size_t start = pos_;
  Many(&D::ParamNoDefault, 0);
  if (Many(&D::ParamWithDefault, 1) && SlashEnd()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::AnySlash() { return First({&D::SlashNoDefault, &D::SlashWithDefault}); }

D::Node* D::InvalidParameters() {
  const std::size_t start = pos_;
  if (Tok(kSlash)) {
    const Token& slash = Last();
    if (Tok(kComma)) return RaiseAtToken(slash, "at least one argument must precede /");
  }
  pos_ = start;
  if (AnySlash()) {
    Many(&D::ParamMaybeDefault, 0);
    if (Tok(kSlash)) return RaiseAtToken(Last(), "/ may appear only once");
  }
  pos_ = start;
  Maybe(&D::SlashNoDefault);
  Many(&D::ParamNoDefault, 0);
  if (SlashWithDefault() || Many(&D::ParamWithDefault, 1)) {
    if (Node* a = ParamNoDefault()) {
      return RaiseAt(a->span, "parameter without a default follows parameter with a default");
    }
  }
  pos_ = start;
  if (ParenthesizedParameters()) return nullptr;
  pos_ = start;
  Maybe(&D::AnySlash);
  Many(&D::ParamMaybeDefault, 0);
  if (Tok(kStar) && (Tok(kComma) || ParamNoDefault())) {
    Many(&D::ParamMaybeDefault, 0);
    if (Tok(kSlash)) return RaiseAtToken(Last(), "/ must be ahead of *");
  }
  pos_ = start;
  if (!Many(&D::ParamMaybeDefault, 1) || !Tok(kSlash) || !Tok(kStar)) return nullptr;
  return RaiseAtToken(Last(), "expected comma between / and *");
}

bool D::ParenthesizedParameters() {
  Many(&D::ParamNoDefault, 0);
  if (!Tok(kLParen)) return false;
  const SourceSpan open = SpanOf(Last());
  // Inside, names are told apart by commas, and the last by the parenthesis.
  const bool outer = in_lambda_;
  bool any = false;
  if (outer) {
    any = !Separated(&D::NameToken).empty();
  } else {
    any = Many(&D::ParamNoDefault, 1);
  }
  if (!any) return false;
  Tok(kComma);
  if (!Tok(kRParen)) return false;
  RaiseAt(Range(open, SpanOf(Last())), outer
                                           ? "Lambda expression parameters cannot be parenthesized"
                                           : "Function parameters cannot be parenthesized");
  return true;
}

// ---- '*' and '**' ------------------------------------------------------------------------------

D::Node* D::StarEtc() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidStarEtc();
    pos_ = start;
  }
  if (Tok(kStar) && First({&D::ParamNoDefault, &D::ParamNoDefaultStar})) {
    Many(&D::ParamMaybeDefault, 0);
    Maybe(&D::Kwds);
    return raised_ ? nullptr : Matched(start);
  }
  pos_ = start;
  if (Tok(kStar) && Tok(kComma) && Many(&D::ParamMaybeDefault, 1)) {
    Maybe(&D::Kwds);
    return raised_ ? nullptr : Matched(start);
  }
  pos_ = start;
  return Kwds();
}

D::Node* D::InvalidStarEtc() {
  const std::size_t start = pos_;
  const TokenKind end = in_lambda_ ? kColon : kRParen;
  if (!Tok(kStar)) return nullptr;
  const Token& star = Last();
  if (Tok(end) || (Tok(kComma) && TokAny({end, kDoubleStar}))) {
    constexpr const char* kMessage = "named arguments must follow bare *";
    return in_lambda_ ? RaiseHere(kMessage) : RaiseAtToken(star, kMessage);
  }
  pos_ = start + 1;
  if (Param() && Tok(kEqual)) {
    return RaiseAtToken(Last(), "var-positional argument cannot have default value");
  }
  pos_ = start + 1;
  if (!ParamNoDefault() && !Tok(kComma)) return nullptr;
  Many(&D::ParamMaybeDefault, 0);
  if (!Tok(kStar)) return nullptr;
  const Token& second = Last();
  if (!ParamNoDefault() && !Tok(kComma)) return nullptr;
  return RaiseAtToken(second, "* argument may appear only once");
}

D::Node* D::Kwds() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidKwds();
    pos_ = start;
  }
  if (Tok(kDoubleStar) && ParamNoDefault()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidKwds() {
  constexpr const char* kFollow = "arguments cannot follow var-keyword argument";
  const std::size_t start = pos_;
  if (!Tok(kDoubleStar) || !Param()) return nullptr;
  if (Tok(kEqual)) {
    return RaiseAtToken(Last(), "var-keyword argument cannot have default value");
  }
  pos_ = start + 1;
  if (!Param() || !Tok(kComma)) return nullptr;
  if (Node* a = Param()) return RaiseAt(a->span, kFollow);
  if (TokAny({kStar, kDoubleStar, kSlash})) return RaiseAtToken(Last(), kFollow);
  return nullptr;
}

}  // namespace caisson::python
