// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

// ---- primaries ---------------------------------------------------------------------------------

D::Node* D::Primary() { return Remember(Memo::kPrimary, &D::PrimaryBody); }

D::Node* D::PrimaryBody() {
  const std::size_t start = pos_;
  Node* node = Atom();
  while (node != nullptr) {
    Node* longer = Trailer(node, start);
    if (longer == nullptr) return node;
    node = longer;
  }
  return nullptr;
}

// `.name`, `(...)` or `[...]` after `value`, which began at `start`.
D::Node* D::Trailer(Node* value, std::size_t start) {
  const std::size_t at = pos_;
  if (Tok(kDot) && Tok(kName)) return MakeWith(ExprKind::kAttribute, start, {value});
  pos_ = at;
  if (Generator()) return MakeWith(ExprKind::kCall, start, {value});
  pos_ = at;
  if (Tok(kLParen)) {
    Maybe(&D::Arguments);
    if (Tok(kRParen)) return MakeWith(ExprKind::kCall, start, {value});
  }
  pos_ = at;
  if (Tok(kLBracket) && Slices() && Tok(kRBracket)) {
    return MakeWith(ExprKind::kSubscript, start, {value});
  }
  pos_ = at;
  return nullptr;
}

D::Node* D::Slices() {
  const std::size_t start = pos_;
  if (Node* one = Slice(); one != nullptr && !Peek(kComma)) return raised_ ? nullptr : one;
  pos_ = start;
  std::vector<Node*> items = Separated(&D::SliceOrStarred);
  if (items.empty()) return nullptr;
  Tok(kComma);
  return MakeWith(ExprKind::kTuple, start, std::move(items));
}

D::Node* D::SliceOrStarred() { return First({&D::Slice, &D::StarredExpression}); }

D::Node* D::Slice() {
  const std::size_t start = pos_;
  Maybe(&D::Expression);
  if (Tok(kColon)) {
    Maybe(&D::Expression);
    if (Tok(kColon)) Maybe(&D::Expression);
    if (!raised_) return Make(ExprKind::kSlice, start);
  }
  pos_ = start;
  return NamedExpression();
}

// ---- atoms -------------------------------------------------------------------------------------

D::Node* D::Atom() {
  if (raised_) return nullptr;
  const std::size_t start = pos_;
  const auto constant = [&](ConstantKind kind) {
    ++pos_;
    Node* node = Make(ExprKind::kConstant, start);
    node->constant = kind;
    return node;
  };
  switch (Current().kind) {
    case kName:
      return NameToken();
    case kTrue:
      return constant(ConstantKind::kTrue);
    case kFalse:
      return constant(ConstantKind::kFalse);
    case kNone:
      return constant(ConstantKind::kNone);
    case kNumber:
      return NumberToken();
    case kEllipsis:
      return constant(ConstantKind::kEllipsis);
    case kString:
    case kFStringStart:
      return Strings();
    case kLParen:
      return First({&D::Tuple, &D::Group, &D::Generator});
    case kLBracket:
      return First({&D::ListDisplay, &D::ListComprehension});
    case kLBrace:
      return First({&D::Dict, &D::SetDisplay, &D::DictComprehension, &D::SetComprehension});
    default:
      return nullptr;
  }
}

D::Node* D::Tuple() {
  const std::size_t start = pos_;
  if (!Tok(kLParen)) return nullptr;
  std::vector<Node*> items;
  const std::size_t inner = pos_;
  Node* first = StarNamedExpression();
  if (first != nullptr && Tok(kComma)) {
    items.push_back(first);
    if (Node* rest = Maybe(&D::StarNamedExpressions)) {
      items.insert(items.end(), rest->kids.begin(), rest->kids.end());
    }
  } else {
    pos_ = inner;
  }
  if (Tok(kRParen)) return MakeWith(ExprKind::kTuple, start, std::move(items));
  pos_ = start;
  return nullptr;
}

D::Node* D::Group() {
  const std::size_t start = pos_;
  if (!Tok(kLParen)) return nullptr;
  if (Node* node = First({&D::Yield, &D::NamedExpression}); node != nullptr && Tok(kRParen)) {
    return node;
  }
  pos_ = start;
  if (explaining_) {
    InvalidGroup();
    pos_ = start;
  }
  return nullptr;
}

D::Node* D::InvalidGroup() {
  const std::size_t start = pos_;
  if (!Tok(kLParen)) return nullptr;
  if (Node* a = StarredExpression(); a != nullptr && Tok(kRParen)) {
    return RaiseAt(a->span, "cannot use starred expression here");
  }
  pos_ = start + 1;
  if (Tok(kDoubleStar)) {
    const Token& stars = Last();
    if (Expression() && Tok(kRParen)) {
      return RaiseAtToken(stars, "cannot use double starred expression here");
    }
  }
  return nullptr;
}

D::Node* D::GeneratorElement() {
  const std::size_t start = pos_;
  if (Tok(kName) && Tok(kColonEqual)) {
    pos_ = start;
    return AssignmentExpression();
  }
  pos_ = start;
  Node* node = Expression();
  if (node != nullptr && !Peek(kColonEqual)) return raised_ ? nullptr : node;
  pos_ = start;
  return nullptr;
}

D::Node* D::Generator() {
  const std::size_t start = pos_;
  if (Tok(kLParen) && GeneratorElement() && ForIfClauses() && Tok(kRParen)) {
    return Make(ExprKind::kGeneratorExp, start);
  }
  pos_ = start;
  if (explaining_) InvalidComprehension();
  pos_ = start;
  return nullptr;
}

D::Node* D::ListDisplay() {
  const std::size_t start = pos_;
  if (!Tok(kLBracket)) return nullptr;
  Node* items = Maybe(&D::StarNamedExpressions);
  if (Tok(kRBracket)) {
    Node* node = Make(ExprKind::kList, start);
    if (items != nullptr) node->kids = items->kids;
    return node;
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::ListComprehension() {
  const std::size_t start = pos_;
  if (Tok(kLBracket) && NamedExpression() && ForIfClauses() && Tok(kRBracket)) {
    return Make(ExprKind::kListComp, start);
  }
  pos_ = start;
  if (explaining_) InvalidComprehension();
  pos_ = start;
  return nullptr;
}

D::Node* D::SetDisplay() {
  const std::size_t start = pos_;
  if (Tok(kLBrace) && StarNamedExpressions() && Tok(kRBrace)) return Make(ExprKind::kSet, start);
  pos_ = start;
  return nullptr;
}

D::Node* D::SetComprehension() {
  const std::size_t start = pos_;
  if (Tok(kLBrace) && NamedExpression() && ForIfClauses() && Tok(kRBrace)) {
    return Make(ExprKind::kSetComp, start);
  }
  pos_ = start;
  if (explaining_) InvalidComprehension();
  pos_ = start;
  return nullptr;
}

// ---- dictionaries ------------------------------------------------------------------------------

D::Node* D::Dict() {
  const std::size_t start = pos_;
  if (!Tok(kLBrace)) return nullptr;
  if (!Separated(&D::DictPair).empty()) Tok(kComma);
  if (Tok(kRBrace)) return Make(ExprKind::kDict, start);
  // CPython looks for these mistakes in its first pass already.
  pos_ = start + 1;
  if (!raised_) InvalidDictPairs();
  pos_ = start;
  return nullptr;
}

D::Node* D::DictPair() {
  const std::size_t start = pos_;
  if (Tok(kDoubleStar) && BitwiseOr()) return Matched(start);
  pos_ = start;
  return KeyValue();
}

D::Node* D::KeyValue() {
  const std::size_t start = pos_;
  if (Expression() && Tok(kColon) && Expression()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidDictPairs() {
  const std::size_t start = pos_;
  if (!Separated(&D::DictPair).empty() && Tok(kComma)) InvalidKeyValue();
  pos_ = start;
  return raised_ ? nullptr : InvalidDictValue();
}

D::Node* D::InvalidKeyValue() {
  const std::size_t start = pos_;
  if (Node* a = Expression(); a != nullptr && !Peek(kColon)) {
    const std::uint32_t column = a->span.end_column > 0 ? a->span.end_column - 1 : 0;
    return RaiseAt({a->span.line, column, a->span.line, column},
                   "':' expected after dictionary key");
  }
  pos_ = start;
  return InvalidDictValue();
}

D::Node* D::InvalidDictValue() {
  const std::size_t start = pos_;
  if (Expression() && Tok(kColon) && Tok(kStar)) {
    const SourceSpan star = SpanOf(Last());
    if (BitwiseOr()) {
      return RaiseAt(UpToReached(star), "cannot use a starred expression in a dictionary value");
    }
  }
  pos_ = start;
  if (!Expression() || !Tok(kColon)) return nullptr;
  const Token& colon = Last();
  if (!PeekAny({kRBrace, kComma})) return nullptr;
  return RaiseAtToken(colon, "expression expected after dictionary key and ':'");
}

D::Node* D::DictComprehension() {
  const std::size_t start = pos_;
  if (Tok(kLBrace) && KeyValue() && ForIfClauses() && Tok(kRBrace)) {
    return Make(ExprKind::kDictComp, start);
  }
  pos_ = start;
  if (explaining_) InvalidDictComprehension();
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidDictComprehension() {
  if (!Tok(kLBrace) || !Tok(kDoubleStar)) return nullptr;
  const Token& stars = Last();
  if (!BitwiseOr() || !ForIfClauses() || !Tok(kRBrace)) return nullptr;
  return RaiseAtToken(stars, "dict unpacking cannot be used in dict comprehension");
}

// ---- comprehensions ----------------------------------------------------------------------------

D::Node* D::InvalidComprehension() {
  constexpr const char* kForgot = "did you forget parentheses around the comprehension target?";
  const std::size_t start = pos_;
  if (TokAny({kLBracket, kLParen, kLBrace})) {
    if (Node* a = StarredExpression(); a != nullptr && ForIfClauses()) {
      return RaiseAt(a->span, "iterable unpacking cannot be used in comprehension");
    }
  }
  pos_ = start;
  if (!TokAny({kLBracket, kLBrace})) return nullptr;
  Node* a = StarNamedExpression();
  if (a == nullptr || !Tok(kComma)) return nullptr;
  const std::size_t after_comma = pos_;
  if (Node* b = StarNamedExpressions(); b != nullptr && ForIfClauses()) {
    return RaiseAt(Range(a->span, b->kids.back()->span), kForgot);
  }
  pos_ = after_comma;
  const SourceSpan comma = SpanOf(Last());
  if (!ForIfClauses()) return nullptr;
  return RaiseAt(Range(a->span, comma), kForgot);
}

// Its kids are, of the last clause, the target and the last expression.
D::Node* D::ForIfClauses() {
  const std::size_t start = pos_;
  std::vector<Node*> clauses = ManyNodes(&D::ForIfClause);
  if (clauses.empty()) return nullptr;
  Node* node = Make(ExprKind::kGeneratorExp, start);
  node->kids = clauses.back()->kids;
  return node;
}

D::Node* D::ForIfClause() {
  const std::size_t start = pos_;
  Tok(kAsync);
  bool committed = false;
  Node* target = Tok(kFor) ? StarTargets() : nullptr;
  if (target != nullptr && Tok(kIn)) {
    committed = true;
    Node* last = Disjunction();
    while (last != nullptr) {
      const std::size_t at = pos_;
      Node* condition = Tok(kIf) ? Disjunction() : nullptr;
      if (condition == nullptr) {
        pos_ = at;
        return MakeWith(ExprKind::kGeneratorExp, start, {target, last});
      }
      last = condition;
    }
  }
  pos_ = start;
  if (committed) return nullptr;
  if (explaining_) InvalidForTarget();
  pos_ = start;
  return nullptr;
}

}  // namespace caisson::python
