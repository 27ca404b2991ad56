// SPDX-License-Identifier: Apache-2.0
// Patterns of `match` statements.
#include "python/parser_core.h"

namespace caisson::python {

using enum TokenKind;

Pattern* Parser::MakeSequencePattern(const Token* first, List<Pattern*> patterns) {
  MatchSequence* sequence = Make<MatchSequence>(SpanFrom(first));
  sequence->patterns = patterns;
  return sequence;
}

Pattern* Parser::MakeValuePattern(const Token* first, Expr* value) {
  MatchValue* pattern = Make<MatchValue>(SpanFrom(first));
  pattern->value = value;
  return pattern;
}

Pattern* Parser::MakeCapture(SourceSpan span, Pattern* pattern, std::string_view name) {
  MatchAs* as = Make<MatchAs>(span);
  as->pattern = pattern;
  as->name = name;
  return as;
}

Pattern* Parser::NoPattern() {
  Fail();
  return Make<MatchAs>({});
}

// After "case": one pattern, or a sequence without brackets.
Pattern* Parser::ParsePatterns() {
  const Token* first = t_;
  const bool starred = At(kStar);
  Pattern* pattern = ParseMaybeStarPattern();
  if (!At(kComma)) {
    if (starred) Fail();
    return pattern;
  }
  ListBuilder<Pattern> patterns(*this);
  patterns.Add(pattern);
  while (Take(kComma) && !At(kColon) && !At(kIf)) patterns.Add(ParseMaybeStarPattern());
  return MakeSequencePattern(first, patterns.Finish());
}

Pattern* Parser::ParseMaybeStarPattern() { return At(kStar) ? ParseStarPattern() : ParsePattern(); }

Pattern* Parser::ParseStarPattern() {
  const Token* first = t_++;
  const bool wildcard = AtSoft(SoftKeyword::kUnderscore);
  const std::string_view name = wildcard ? std::string_view() : ParseCaptureName();
  if (wildcard) ++t_;
  MatchStar* star = Make<MatchStar>(SpanFrom(first));
  star->name = name;
  return star;
}

// A name that is bound: not "_", and not the start of a dotted name, class or keyword pattern.
std::string_view Parser::ParseCaptureName() {
  const TokenKind next = At(kName) ? t_[1].kind : kError;
  if (AtSoft(SoftKeyword::kUnderscore) || next == kDot || next == kLParen || next == kEqual) {
    Fail();
    return {};
  }
  return ExpectName();
}

Pattern* Parser::ParsePattern() {
  const DepthScope scope(*this);
  const Token* first = t_;
  Pattern* pattern = ParseOrPattern();
  if (!Take(kAs)) return pattern;
  const std::string_view name = ParseCaptureName();
  return MakeCapture(SpanFrom(first), pattern, name);
}

Pattern* Parser::ParseOrPattern() {
  const Token* first = t_;
  Pattern* pattern = ParseClosedPattern();
  if (!At(kVBar)) return pattern;
  ListBuilder<Pattern> patterns(*this);
  patterns.Add(pattern);
  while (Take(kVBar)) patterns.Add(ParseClosedPattern());
  MatchOr* either = Make<MatchOr>(SpanFrom(first));
  either->patterns = patterns.Finish();
  return either;
}

Pattern* Parser::ParseClosedPattern() {
  const Token* first = t_;
  const auto singleton = [&](ConstantKind value) -> Pattern* {
    MatchSingleton* pattern = Make<MatchSingleton>(SpanOf(*t_++));
    pattern->value = value;
    return pattern;
  };
  switch (t_->kind) {
    case kNumber:
    case kMinus: {
      Expr* value = ParsePatternNumber();
      return MakeValuePattern(first, value);
    }
    case kString:
    case kFStringStart: {
      Expr* value = ParseStrings();
      return MakeValuePattern(first, value);
    }
    case kNone:
      return singleton(ConstantKind::kNone);
    case kTrue:
      return singleton(ConstantKind::kTrue);
    case kFalse:
      return singleton(ConstantKind::kFalse);
    case kName:
      return ParseNamePattern();
    case kLParen:
      return ParseParenthesizedPattern();
    case kLBracket:
      return ParseListPattern();
    case kLBrace:
      return ParseMappingPattern();
    default:
      return NoPattern();
  }
}

// ---- numbers -----------------------------------------------------------------------------------

Expr* Parser::ParseSignedNumber() {
  const Token* first = t_;
  const bool negative = Take(kMinus);
  Expr* number = At(kNumber) ? ParseNumber() : Nowhere();
  if (!negative) return number;
  UnaryOp* node = Make<UnaryOp>(SpanFrom(first));
  node->op = UnaryOperator::kUSub;
  node->operand = number;
  return node;
}

// A signed number, or a complex one: real part, sign, imaginary part.
Expr* Parser::ParsePatternNumber() {
  const auto is_complex = [](const Expr* number) {
    return number->kind == ExprKind::kConstant &&
           As<Constant>(number)->constant == ConstantKind::kComplex;
  };
  const Token* first = t_;
  Expr* real = ParseSignedNumber();
  if (!At(kPlus) && !At(kMinus)) return real;
  const BinaryOperator op = At(kPlus) ? BinaryOperator::kAdd : BinaryOperator::kSub;
  const Expr* magnitude = real->kind == ExprKind::kUnaryOp ? As<UnaryOp>(real)->operand : real;
  if (is_complex(magnitude)) {
    FailWith(SyntaxError::Type::kSyntax, "real number required in complex literal",
             magnitude->span);
    return real;
  }
  ++t_;
  Expr* imaginary = At(kNumber) ? ParseNumber() : Nowhere();
  if (!failed_ && !is_complex(imaginary)) {
    FailWith(SyntaxError::Type::kSyntax, "imaginary number required in complex literal",
             imaginary->span);
  }
  BinOp* node = Make<BinOp>(SpanFrom(first));
  node->left = real;
  node->op = op;
  node->right = imaginary;
  return node;
}

// ---- names -------------------------------------------------------------------------------------

Expr* Parser::ParseDottedPatternName() {
  const Token* first = t_;
  Expr* name = At(kName) ? MakeName(*t_++, ExprContext::kLoad) : Nowhere();
  while (Take(kDot)) {
    const std::string_view attr = ExpectName();
    Attribute* attribute = Make<Attribute>(SpanFrom(first));
    attribute->value = name;
    attribute->attr = attr;
    name = attribute;
  }
  return name;
}

Pattern* Parser::ParseNamePattern() {
  const Token* first = t_;
  if (AtSoft(SoftKeyword::kUnderscore)) return MakeCapture(SpanOf(*t_++), nullptr, {});
  if (t_[1].kind != kDot && t_[1].kind != kLParen) {
    const std::string_view name = ParseCaptureName();
    return MakeCapture(SpanFrom(first), nullptr, name);
  }
  Expr* name = ParseDottedPatternName();
  if (At(kLParen)) return ParseClassPattern(first, name);
  if (At(kEqual)) return NoPattern();
  return MakeValuePattern(first, name);
}

Pattern* Parser::ParseClassPattern(const Token* first, Expr* cls) {
  ++t_;
  ListBuilder<Pattern> positional(*this);
  std::vector<std::string_view> attrs;
  std::vector<Pattern*> named;
  do {
    if (At(kRParen)) break;
    if (At(kName) && t_[1].kind == kEqual) {
      attrs.push_back(Identifier(*t_));
      t_ += 2;
      named.push_back(ParsePattern());
    } else {
      if (!named.empty()) Fail();
      positional.Add(ParsePattern());
    }
  } while (Take(kComma));
  Expect(kRParen);
  MatchClass* pattern = Make<MatchClass>(SpanFrom(first));
  pattern->cls = cls;
  pattern->patterns = positional.Finish();
  pattern->kwd_attrs = arena_.Copy<std::string_view>(attrs);
  pattern->kwd_patterns = arena_.Copy<Pattern*>(named);
  return pattern;
}

// ---- brackets ----------------------------------------------------------------------------------

Pattern* Parser::ParseParenthesizedPattern() {
  const Token* first = t_++;
  if (Take(kRParen)) return MakeSequencePattern(first, {});
  const bool starred = At(kStar);
  Pattern* pattern = ParseMaybeStarPattern();
  if (!At(kComma)) {
    if (starred) Fail();
    Expect(kRParen);
    return pattern;
  }
  ListBuilder<Pattern> patterns(*this);
  patterns.Add(pattern);
  while (Take(kComma) && !At(kRParen)) patterns.Add(ParseMaybeStarPattern());
  Expect(kRParen);
  return MakeSequencePattern(first, patterns.Finish());
}

Pattern* Parser::ParseListPattern() {
  const Token* first = t_++;
  ListBuilder<Pattern> patterns(*this);
  do {
    if (At(kRBracket)) break;
    patterns.Add(ParseMaybeStarPattern());
  } while (Take(kComma));
  Expect(kRBracket);
  return MakeSequencePattern(first, patterns.Finish());
}

Expr* Parser::ParseMappingKey() {
  switch (t_->kind) {
    case kNumber:
    case kMinus:
      return ParsePatternNumber();
    case kString:
    case kFStringStart:
      return ParseStrings();
    case kNone:
      return MakeConstant(*t_++, ConstantKind::kNone);
    case kTrue:
      return MakeConstant(*t_++, ConstantKind::kTrue);
    case kFalse:
      return MakeConstant(*t_++, ConstantKind::kFalse);
    default:
      break;
  }
  if (!At(kName) || t_[1].kind != kDot) return Nowhere();
  return ParseDottedPatternName();
}

Pattern* Parser::ParseMappingPattern() {
  const Token* first = t_++;
  std::string_view rest;
  std::vector<Expr*> keys;
  ListBuilder<Pattern> patterns(*this);
  do {
    if (At(kRBrace)) break;
    if (Take(kDoubleStar)) {
      rest = ParseCaptureName();
      Take(kComma);
      break;
    }
    keys.push_back(ParseMappingKey());
    Expect(kColon);
    patterns.Add(ParsePattern());
  } while (Take(kComma));
  Expect(kRBrace);
  MatchMapping* mapping = Make<MatchMapping>(SpanFrom(first));
  mapping->keys = arena_.Copy<Expr*>(keys);
  mapping->patterns = patterns.Finish();
  mapping->rest = rest;
  return mapping;
}

}  // namespace caisson::python
