// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::Patterns() { return First({&D::OpenSequence, &D::Pattern}); }

D::Node* D::OpenSequence() {
  const std::size_t start = pos_;
  if (MaybeStarPattern() && Tok(kComma)) {
    Maybe(&D::MaybeSequence);
    if (!raised_) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::MaybeSequence() {
  const std::size_t start = pos_;
  if (Separated(&D::MaybeStarPattern).empty()) return nullptr;
  Tok(kComma);
  return Matched(start);
}

D::Node* D::MaybeStarPattern() { return First({&D::StarPattern, &D::Pattern}); }

D::Node* D::StarPattern() { return Remember(Memo::kStarPattern, &D::StarPatternBody); }

D::Node* D::StarPatternBody() {
  const std::size_t start = pos_;
  if (Tok(kStar) && First({&D::CaptureTarget, &D::Wildcard})) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::Pattern() { return First({&D::AsPattern, &D::OrPattern}); }

D::Node* D::AsPattern() {
  const std::size_t start = pos_;
  if (OrPattern() && Tok(kAs) && CaptureTarget()) return Matched(start);
  pos_ = start;
  if (explaining_) {
    if (OrPattern() && Tok(kAs)) {
      if (Peek(kName)) {
        if (Soft(SoftKeyword::kUnderscore)) {
          RaiseAtToken(Last(), "cannot use '_' as a target");
        }
      } else if (Node* a = Expression()) {
        RaiseAt(a->span, "invalid pattern target");
      }
    }
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::OrPattern() {
  const std::size_t start = pos_;
  if (!ClosedPattern()) return nullptr;
  for (;;) {
    const std::size_t at = pos_;
    if (Tok(kVBar) && ClosedPattern()) continue;
    pos_ = at;
    return raised_ ? nullptr : Matched(start);
  }
}

D::Node* D::ClosedPattern() { return Remember(Memo::kClosedPattern, &D::ClosedPatternBody); }

D::Node* D::ClosedPatternBody() {
  return First({&D::LiteralPattern, &D::CaptureTarget, &D::Wildcard, &D::ValuePattern,
                &D::GroupPattern, &D::SequencePattern, &D::MappingPattern, &D::ClassPattern});
}

// ---- literals ----------------------------------------------------------------------------------

D::Node* D::LiteralPattern() {
  const std::size_t start = pos_;
  if (Node* number = NumberPattern()) return number;
  if (Node* text = Strings()) return text;
  return TokAny({kNone, kTrue, kFalse}) ? Matched(start) : nullptr;
}

D::Node* D::SignedNumber() {
  const std::size_t start = pos_;
  Tok(kMinus);
  if (Node* number = NumberToken()) return number;
  pos_ = start;
  return nullptr;
}

// A signed number, or a complex one, whose parts must be of the right kind.
D::Node* D::NumberPattern() {
  const auto is_imaginary = [](const Node* node) {
    return node->constant == ConstantKind::kComplex;
  };
  const std::size_t start = pos_;
  Node* real = SignedNumber();
  if (real == nullptr) return nullptr;
  if (!PeekAny({kPlus, kMinus})) return raised_ ? nullptr : Matched(start);
  if (is_imaginary(real)) return RaiseAt(real->span, "real number required in complex literal");
  Node* imaginary = TokAny({kPlus, kMinus}) ? NumberToken() : nullptr;
  if (imaginary == nullptr) {
    pos_ = start;
    return nullptr;
  }
  if (is_imaginary(imaginary)) return Matched(start);
  return RaiseAt(imaginary->span, "imaginary number required in complex literal");
}

// ---- names -------------------------------------------------------------------------------------

D::Node* D::CaptureTarget() {
  const std::size_t start = pos_;
  if (Peek(kName) && tokens_[pos_].soft == SoftKeyword::kUnderscore) return nullptr;
  Node* name = NameToken();
  if (name != nullptr && !PeekAny({kDot, kLParen, kEqual})) return raised_ ? nullptr : name;
  pos_ = start;
  return nullptr;
}

D::Node* D::Wildcard() {
  const std::size_t start = pos_;
  return Soft(SoftKeyword::kUnderscore) ? Matched(start) : nullptr;
}

D::Node* D::DottedPattern() {
  const std::size_t start = pos_;
  if (!Tok(kName) || !Tok(kDot) || !Tok(kName)) {
    pos_ = start;
    return nullptr;
  }
  for (;;) {
    const std::size_t at = pos_;
    if (Tok(kDot) && Tok(kName)) continue;
    pos_ = at;
    return raised_ ? nullptr : Matched(start);
  }
}

D::Node* D::NameOrDotted() {
  if (Node* dotted = DottedPattern()) return dotted;
  return NameToken();
}

D::Node* D::ValuePattern() {
  const std::size_t start = pos_;
  Node* name = DottedPattern();
  if (name != nullptr && !PeekAny({kDot, kLParen, kEqual})) return raised_ ? nullptr : name;
  pos_ = start;
  return nullptr;
}

// ---- brackets ----------------------------------------------------------------------------------

D::Node* D::GroupPattern() {
  const std::size_t start = pos_;
  if (Tok(kLParen) && Pattern() && Tok(kRParen)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::SequencePattern() {
  const std::size_t start = pos_;
  if (Tok(kLBracket)) {
    Maybe(&D::MaybeSequence);
    if (Tok(kRBracket)) return Matched(start);
  }
  pos_ = start;
  if (Tok(kLParen)) {
    Maybe(&D::OpenSequence);
    if (Tok(kRParen)) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::DoubleStarPattern() {
  const std::size_t start = pos_;
  if (Tok(kDoubleStar) && CaptureTarget()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::MappingItem() {
  const std::size_t start = pos_;
  if (First({&D::LiteralPattern, &D::DottedPattern}) && Tok(kColon) && Pattern()) {
    return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::MappingPattern() {
  const std::size_t start = pos_;
  if (!Tok(kLBrace)) return nullptr;
  if (Tok(kRBrace)) return Matched(start);
  if (DoubleStarPattern()) {
    Tok(kComma);
    if (Tok(kRBrace)) return Matched(start);
  }
  pos_ = start + 1;
  if (!Separated(&D::MappingItem).empty()) {
    const std::size_t at = pos_;
    if (!Tok(kComma) || !DoubleStarPattern()) pos_ = at;
    Tok(kComma);
    if (Tok(kRBrace)) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::KeywordPattern() {
  const std::size_t start = pos_;
  if (Tok(kName) && Tok(kEqual) && Pattern()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ClassPattern() {
  const std::size_t start = pos_;
  if (!NameOrDotted() || !Tok(kLParen)) {
    pos_ = start;
    return nullptr;
  }
  const std::size_t inner = pos_;
  if (Tok(kRParen)) return Matched(start);
  const bool positional = !Separated(&D::Pattern).empty();
  if (positional) {
    const std::size_t at = pos_;
    Tok(kComma);
    if (Tok(kRParen)) return Matched(start);
    pos_ = at;
    if (!Tok(kComma)) pos_ = inner;
  }
  if (!Separated(&D::KeywordPattern).empty()) {
    Tok(kComma);
    if (Tok(kRParen)) return Matched(start);
  }
  pos_ = start;
  if (explaining_) InvalidClassPattern();
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidClassPattern() {
  if (!NameOrDotted() || !Tok(kLParen)) return nullptr;
  const std::size_t inner = pos_;
  if (Separated(&D::Pattern).empty() || !Tok(kComma)) pos_ = inner;
  if (Separated(&D::KeywordPattern).empty() || !Tok(kComma)) return nullptr;
  const std::vector<Node*> late = Separated(&D::Pattern);
  if (late.empty()) return nullptr;
  return RaiseAt(Range(late.front()->span, late.back()->span),
                 "positional patterns follow keyword patterns");
}

}  // namespace caisson::python
