// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::StarTargets() {
  const std::size_t start = pos_;
  if (Node* one = StarTarget(); one != nullptr && !Peek(kComma)) return raised_ ? nullptr : one;
  pos_ = start;
  std::vector<Node*> targets = Separated(&D::StarTarget);
  if (targets.empty()) return nullptr;
  Tok(kComma);
  return MakeWith(ExprKind::kTuple, start, std::move(targets));
}

D::Node* D::StarTarget() { return Remember(Memo::kStarTarget, &D::StarTargetBody); }

D::Node* D::StarTargetUnstarred() { return Peek(kStar) ? nullptr : StarTarget(); }

D::Node* D::StarTargetBody() {
  const std::size_t start = pos_;
  if (Tok(kStar)) {
    if (Node* target = StarTargetUnstarred()) return MakeWith(ExprKind::kStarred, start, {target});
  }
  pos_ = start;
  return TargetWithStarAtom();
}

D::Node* D::TargetWithStarAtom() {
  return Remember(Memo::kTargetWithStarAtom, &D::TargetWithStarAtomBody);
}

D::Node* D::TargetWithStarAtomBody() { return First({&D::SingleSubscriptAttribute, &D::StarAtom}); }

D::Node* D::StarAtom() {
  const std::size_t start = pos_;
  if (Node* name = NameToken()) return name;
  if (Tok(kLParen)) {
    if (Node* target = TargetWithStarAtom(); target != nullptr && Tok(kRParen)) return target;
    pos_ = start + 1;
    std::vector<Node*> targets;
    Node* first = StarTarget();
    if (first != nullptr && Tok(kComma)) {
      pos_ = start + 1;
      targets = Separated(&D::StarTarget);
      Tok(kComma);
    } else {
      pos_ = start + 1;
    }
    if (Tok(kRParen)) return MakeWith(ExprKind::kTuple, start, std::move(targets));
  }
  pos_ = start;
  if (Tok(kLBracket)) {
    std::vector<Node*> targets = Separated(&D::StarTarget);
    if (!targets.empty()) Tok(kComma);
    if (Tok(kRBracket)) return MakeWith(ExprKind::kList, start, std::move(targets));
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::SingleTarget() {
  const std::size_t start = pos_;
  if (Node* node = First({&D::SingleSubscriptAttribute, &D::NameToken})) return node;
  if (Tok(kLParen)) {
    if (Node* node = SingleTarget(); node != nullptr && Tok(kRParen)) return node;
  }
  pos_ = start;
  return nullptr;
}

bool D::AtTrailer() { return PeekAny({kLParen, kLBracket, kDot}); }

D::Node* D::SingleSubscriptAttribute() {
  const std::size_t start = pos_;
  if (!TargetPrimary()) return nullptr;
  const std::size_t at = pos_;
  if (Tok(kDot) && Tok(kName) && !AtTrailer() && !raised_) return Make(ExprKind::kAttribute, start);
  pos_ = at;
  if (Tok(kLBracket) && Slices() && Tok(kRBracket) && !AtTrailer() && !raised_) {
    return Make(ExprKind::kSubscript, start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::TargetPrimary() { return Remember(Memo::kTargetPrimary, &D::TargetPrimaryBody); }

D::Node* D::TargetPrimaryBody() {
  const std::size_t start = pos_;
  Node* node = Atom();
  if (node == nullptr || !AtTrailer()) {
    pos_ = start;
    return nullptr;
  }
  for (;;) {
    const std::size_t at = pos_;
    Node* longer = Trailer(node, start);
    if (longer == nullptr || !AtTrailer()) {
      pos_ = at;
      return raised_ ? nullptr : node;
    }
    node = longer;
  }
}

D::Node* D::DeleteTargets() {
  const std::size_t start = pos_;
  if (Separated(&D::DeleteTarget).empty()) return nullptr;
  Tok(kComma);
  return Matched(start);
}

D::Node* D::DeleteTarget() { return Remember(Memo::kDeleteTarget, &D::DeleteTargetBody); }

D::Node* D::DeleteTargetBody() { return First({&D::SingleSubscriptAttribute, &D::DeleteAtom}); }

D::Node* D::DeleteAtom() {
  const std::size_t start = pos_;
  if (Node* name = NameToken()) return name;
  if (Tok(kLParen)) {
    if (Node* target = DeleteTarget(); target != nullptr && Tok(kRParen)) return target;
    pos_ = start + 1;
    Maybe(&D::DeleteTargets);
    if (Tok(kRParen)) return Matched(start);
  }
  pos_ = start;
  if (Tok(kLBracket)) {
    Maybe(&D::DeleteTargets);
    if (Tok(kRBracket)) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

}  // namespace caisson::python
