// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

#include <fmt/format.h>

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::Arguments() { return Remember(Memo::kArguments, &D::ArgumentsBody); }

D::Node* D::ArgumentsBody() {
  const std::size_t start = pos_;
  if (Node* args = Args()) {
    Tok(kComma);
    if (Peek(kRParen)) return args;
  }
  pos_ = start;
  if (explaining_) InvalidArguments();
  pos_ = start;
  return nullptr;
}

// A call's arguments: the positional ones as kids, those after keywords included.
D::Node* D::Args() {
  const std::size_t start = pos_;
  std::vector<Node*> positional = Separated(&D::PositionalArgument);
  bool double_starred = false;
  if (!positional.empty()) {
    const std::size_t at = pos_;
    Node* more = Tok(kComma) ? Kwargs() : nullptr;
    if (more == nullptr) {
      pos_ = at;
    } else {
      positional.insert(positional.end(), more->kids.begin(), more->kids.end());
      double_starred = more->double_starred;
    }
  } else {
    pos_ = start;
    Node* only = Kwargs();
    if (only == nullptr) return nullptr;
    positional.assign(only->kids.begin(), only->kids.end());
    double_starred = only->double_starred;
  }
  if (raised_) return nullptr;
  Node* node = MakeWith(ExprKind::kCall, start, std::move(positional));
  node->double_starred = double_starred;
  return node;
}

D::Node* D::PositionalArgument() {
  const std::size_t start = pos_;
  if (Node* node = StarredExpression()) return node;
  pos_ = start;
  Node* node = GeneratorElement();
  if (node != nullptr && !Peek(kEqual)) return raised_ ? nullptr : node;
  pos_ = start;
  return nullptr;
}

// The same, but with a keyword or an unpacking at least.
D::Node* D::ArgsWithKeywords() {
  const std::size_t start = pos_;
  if (!Separated(&D::PositionalArgument).empty() && Tok(kComma)) {
    if (Node* node = Kwargs()) return node;
  }
  pos_ = start;
  return Kwargs();
}

D::Node* D::Kwargs() {
  const std::size_t start = pos_;
  std::vector<Node*> items = Separated(&D::KwargOrStarred);
  if (items.empty()) {
    pos_ = start;
    items = Separated(&D::KwargOrDoubleStarred);
  } else {
    const std::size_t at = pos_;
    std::vector<Node*> more;
    if (Tok(kComma)) more = Separated(&D::KwargOrDoubleStarred);
    if (more.empty()) pos_ = at;
    items.insert(items.end(), more.begin(), more.end());
  }
  if (items.empty() || raised_) {
    pos_ = start;
    return nullptr;
  }
  std::vector<Node*> starred;
  bool double_starred = false;
  for (Node* item : items) {
    if (item->kind == ExprKind::kStarred) starred.push_back(item);
    double_starred |= item->double_starred;
  }
  Node* node = MakeWith(ExprKind::kCall, start, std::move(starred));
  node->double_starred = double_starred;
  return node;
}

D::Node* D::NamedArgument() {
  const std::size_t start = pos_;
  if (explaining_) {
    InvalidKwarg();
    pos_ = start;
  }
  if (Tok(kName) && Tok(kEqual) && Expression()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::KwargOrStarred() { return First({&D::NamedArgument, &D::StarredExpression}); }

D::Node* D::KwargOrDoubleStarred() { return First({&D::NamedArgument, &D::DoubleStarredArgument}); }

D::Node* D::DoubleStarredArgument() {
  const std::size_t start = pos_;
  if (Tok(kDoubleStar) && Expression()) {
    Node* node = Matched(start);
    node->double_starred = true;
    return node;
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidKwarg() {
  const std::size_t start = pos_;
  if (TokAny({kTrue, kFalse, kNone})) {
    const Token& word = Last();
    if (Tok(kEqual)) {
      return RaiseAt(Range(SpanOf(word), SpanOf(Last())),
                     fmt::format("cannot assign to {}", TextOf(word)));
    }
  }
  pos_ = start;
  if (Node* a = NameToken(); a != nullptr && Tok(kEqual)) {
    const SourceSpan equal = SpanOf(Last());
    if (Expression() && ForIfClauses()) {
      return RaiseAt(Range(a->span, equal),
                     "invalid syntax. Maybe you meant '==' or ':=' instead of '='?");
    }
  }
  pos_ = start;
  const bool is_keyword = Tok(kName) && Tok(kEqual);
  pos_ = start;
  if (Node* a = is_keyword ? nullptr : Expression(); a != nullptr && Tok(kEqual)) {
    return RaiseAt(Range(a->span, SpanOf(Last())),
                   "expression cannot contain assignment, perhaps you meant \"==\"?");
  }
  pos_ = start;
  if (!Tok(kDoubleStar) || !Expression() || !Tok(kEqual)) return nullptr;
  Node* value = Expression();
  if (value == nullptr) return nullptr;
  return RaiseAt(Range(SpanOf(tokens_[start]), value->span),
                 "cannot assign to keyword argument unpacking");
}

D::Node* D::InvalidArguments() {
  const std::size_t start = pos_;
  if (ArgsWithKeywords() && Tok(kComma) && Tok(kStar)) {
    return RaiseAtToken(Last(), "iterable argument unpacking follows keyword argument unpacking");
  }
  pos_ = start;
  InvalidGeneratorArguments();
  pos_ = start;
  if (raised_) return nullptr;
  Node* a = Args();
  if (a == nullptr || !Tok(kComma) || !Args()) return nullptr;
  return RaiseHere(a->double_starred ? "positional argument follows keyword argument unpacking"
                                     : "positional argument follows keyword argument");
}

// Mistakes around a generator without parentheses, and around '='.
D::Node* D::InvalidGeneratorArguments() {
  constexpr const char* kParenthesize = "Generator expression must be parenthesized";
  const std::size_t start = pos_;
  if (Node* a = Expression()) {
    if (Node* b = ForIfClauses(); b != nullptr && Tok(kComma)) {
      const std::size_t at = pos_;
      if (!Args()) {
        pos_ = at;
        if (!Expression() || !ForIfClauses()) pos_ = at;
      }
      return RaiseAt(Range(a->span, b->kids[1]->span), kParenthesize);
    }
  }
  pos_ = start;
  if (Node* a = NameToken(); a != nullptr && Tok(kEqual)) {
    const SourceSpan equal = SpanOf(Last());
    if (Expression() && ForIfClauses()) {
      return RaiseAt(Range(a->span, equal),
                     "invalid syntax. Maybe you meant '==' or ':=' instead of '='?");
    }
  }
  pos_ = start;
  if (!Args() || !Tok(kComma)) pos_ = start;
  if (Node* a = NameToken(); a != nullptr && Tok(kEqual)) {
    const SourceSpan equal = SpanOf(Last());
    if (PeekAny({kComma, kRParen})) {
      return RaiseAt(Range(a->span, equal), "expected argument value expression");
    }
  }
  pos_ = start;
  if (Node* a = Args()) {
    Node* b = ForIfClauses();
    if (b != nullptr && a->kids.size() > 1) {
      return RaiseAt(Range(a->kids.back()->span, b->kids[1]->span), kParenthesize);
    }
  }
  pos_ = start;
  if (!Args() || !Tok(kComma)) return nullptr;
  Node* a = Expression();
  Node* b = a != nullptr ? ForIfClauses() : nullptr;
  if (b == nullptr) return nullptr;
  return RaiseAt(Range(a->span, b->kids[0]->span), kParenthesize);
}

}  // namespace caisson::python
