// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"
#include "python/diagnose_memo.h"

#include <fmt/format.h>

namespace caisson::python {

using enum TokenKind;
using D = Diagnoser;

D::Node* D::File() {
  Maybe(&D::Statements);
  return Tok(kEndMarker) ? Matched(origin_) : nullptr;
}

D::Node* D::Statements() {
  const std::size_t start = pos_;
  return Many(&D::Statement, 1) && !raised_ ? Matched(start) : nullptr;
}

D::Node* D::Statement() { return First({&D::CompoundStatement, &D::SimpleStatements}); }

D::Node* D::CompoundStatement() {
  if (raised_) return nullptr;
  switch (Current().kind) {
    case kDef:
      return FunctionDefinition();
    case kAt:
      return First({&D::FunctionDefinition, &D::ClassDefinition});
    case kAsync:
      return First({&D::FunctionDefinition, &D::With, &D::For});
    case kIf:
      return If();
    case kClass:
      return ClassDefinition();
    case kWith:
      return With();
    case kFor:
      return For();
    case kTry:
      return Try();
    case kWhile:
      return While();
    case kName:
      return tokens_[pos_].soft == SoftKeyword::kMatch ? Match() : nullptr;
    default:
      return nullptr;
  }
}

D::Node* D::SimpleStatements() {
  const std::size_t start = pos_;
  if (SimpleStatement() && !Peek(kSemicolon) && Tok(kNewline)) return Matched(start);
  pos_ = start;
  for (;;) {
    const std::size_t at = pos_;
    if (!SimpleStatement()) {
      pos_ = at;
      break;
    }
    if (!Tok(kSemicolon)) break;
  }
  if (pos_ > start && Tok(kNewline)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::SimpleStatement() { return Remember(Memo::kSimpleStatement, &D::SimpleStatementBody); }

D::Node* D::SimpleStatementBody() {
  const std::size_t start = pos_;
  if (Node* node = First({&D::Assignment, &D::TypeAlias, &D::StarExpressions})) return node;
  if (raised_) return nullptr;
  switch (Current().kind) {
    case kReturn:
      return Return();
    case kImport:
      return Import();
    case kFrom:
      return ImportFrom();
    case kRaise:
      return Raise();
    case kDel:
      return Delete();
    case kYield:
      return Yield();
    case kAssert:
      return Assert();
    case kGlobal:
    case kNonlocal:
      return Scope();
    case kPass:
    case kBreak:
    case kContinue:
      ++pos_;
      return Matched(start);
    default:
      return nullptr;
  }
}

// ---- assignments -------------------------------------------------------------------------------

D::Node* D::RightSide() { return First({&D::Yield, &D::StarExpressions}); }

// ['=' right side]: matches always.
D::Node* D::AnnotatedRightSide() {
  const std::size_t start = pos_;
  if (Tok(kEqual) && RightSide()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ParenthesizedSingleTarget() {
  const std::size_t start = pos_;
  if (Tok(kLParen) && SingleTarget() && Tok(kRParen)) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::AssignedTarget() {
  const std::size_t start = pos_;
  Node* target = StarTargets();
  if (target != nullptr && Tok(kEqual)) return target;
  pos_ = start;
  return nullptr;
}

bool D::AugmentedOperator() {
  return TokAny({kPlusEqual, kMinusEqual, kStarEqual, kAtEqual, kSlashEqual, kPercentEqual,
                 kAmperEqual, kVBarEqual, kCircumflexEqual, kLeftShiftEqual, kRightShiftEqual,
                 kDoubleStarEqual, kDoubleSlashEqual});
}

D::Node* D::Assignment() {
  const std::size_t start = pos_;
  if (NameToken() && Tok(kColon) && Expression()) {
    Maybe(&D::AnnotatedRightSide);
    if (!raised_) return Matched(start);
  }
  pos_ = start;
  if (First({&D::ParenthesizedSingleTarget, &D::SingleSubscriptAttribute}) && Tok(kColon) &&
      Expression()) {
    Maybe(&D::AnnotatedRightSide);
    if (!raised_) return Matched(start);
  }
  pos_ = start;
  if (Many(&D::AssignedTarget, 1) && RightSide() && !Peek(kEqual) && !raised_) {
    return Matched(start);
  }
  pos_ = start;
  if (SingleTarget() && AugmentedOperator()) {
    // Nothing else is tried after the operator.
    if (RightSide()) return Matched(start);
    pos_ = start;
    return nullptr;
  }
  pos_ = start;
  if (explaining_) InvalidAssignment();
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidAnnotatedTarget() {
  if (Node* node = First({&D::ListDisplay, &D::Tuple})) return node;
  const std::size_t start = pos_;
  if (Tok(kLParen)) {
    if (Node* node = InvalidAnnotatedTarget(); node != nullptr && Tok(kRParen)) return node;
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::InvalidAssignment() {
  const std::size_t start = pos_;
  if (Node* a = InvalidAnnotatedTarget(); a != nullptr && Tok(kColon) && Expression()) {
    return RaiseAt(a->span, fmt::format("only single target (not {}) can be annotated", NameOf(a)));
  }
  pos_ = start;
  if (Node* a = StarNamedExpression(); a != nullptr && Tok(kComma)) {
    Many(&D::StarNamedExpressions, 0);
    if (Tok(kColon) && Expression()) {
      return RaiseAt(a->span, "only single target (not tuple) can be annotated");
    }
  }
  pos_ = start;
  if (Node* a = Expression(); a != nullptr && Tok(kColon) && Expression()) {
    return RaiseAt(a->span, "illegal target for annotation");
  }
  pos_ = start;
  Many(&D::AssignedTarget, 0);
  if (Node* a = StarExpressions(); a != nullptr && Tok(kEqual)) {
    RaiseInvalidTarget(TargetKind::kStar, a);
    if (raised_) return nullptr;
  }
  pos_ = start;
  Many(&D::AssignedTarget, 0);
  if (Node* a = Yield(); a != nullptr && Tok(kEqual)) {
    return RaiseAt(a->span, "assignment to yield expression not possible");
  }
  pos_ = start;
  Node* a = StarExpressions();
  if (a == nullptr || !AugmentedOperator() || !RightSide()) return nullptr;
  return RaiseAt(a->span,
                 fmt::format("'{}' is an illegal expression for augmented assignment", NameOf(a)));
}

// ---- other simple statements -------------------------------------------------------------------

D::Node* D::Return() {
  const std::size_t start = pos_;
  if (!Tok(kReturn)) return nullptr;
  Maybe(&D::StarExpressions);
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::Raise() {
  const std::size_t start = pos_;
  if (!Tok(kRaise)) return nullptr;
  if (Expression()) {
    const std::size_t at = pos_;
    if (!Tok(kFrom) || !Expression()) pos_ = at;
  }
  return raised_ ? nullptr : Matched(start);
}

D::Node* D::Scope() {
  const std::size_t start = pos_;
  if (TokAny({kGlobal, kNonlocal}) && !Separated(&D::NameToken).empty()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::Delete() {
  const std::size_t start = pos_;
  if (Tok(kDel) && DeleteTargets() && PeekAny({kSemicolon, kNewline})) return Matched(start);
  pos_ = start;
  if (explaining_ && Tok(kDel)) {
    if (Node* a = StarExpressions()) RaiseInvalidTarget(TargetKind::kDelete, a);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::Assert() {
  const std::size_t start = pos_;
  if (!Tok(kAssert) || !Expression()) {
    pos_ = start;
    return nullptr;
  }
  const std::size_t at = pos_;
  if (!Tok(kComma) || !Expression()) pos_ = at;
  return raised_ ? nullptr : Matched(start);
}

// ---- imports -----------------------------------------------------------------------------------

D::Node* D::DottedName() {
  const std::size_t start = pos_;
  if (!Tok(kName)) return nullptr;
  for (;;) {
    const std::size_t at = pos_;
    if (Tok(kDot) && Tok(kName)) continue;
    pos_ = at;
    return Matched(start);
  }
}

D::Node* D::DottedAsName() {
  Node* name = DottedName();
  if (name != nullptr) Maybe(&D::AsName);
  return name;
}

D::Node* D::ImportedName() {
  Node* name = NameToken();
  if (name != nullptr) Maybe(&D::AsName);
  return name;
}

D::Node* D::ImportedNames() {
  const std::size_t start = pos_;
  return Separated(&D::ImportedName).empty() ? nullptr : Matched(start);
}

D::Node* D::Import() {
  const std::size_t start = pos_;
  if (explaining_ && Tok(kImport) && !Separated(&D::DottedName).empty() && Tok(kFrom) &&
      DottedName()) {
    return RaiseAt(UpToReached(SpanOf(tokens_[start])),
                   "Did you mean to use 'from ... import ...' instead?");
  }
  pos_ = start;
  if (Tok(kImport) && !Separated(&D::DottedAsName).empty()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ImportFrom() {
  const std::size_t start = pos_;
  if (!Tok(kFrom)) return nullptr;
  const std::size_t dots_start = pos_;
  while (TokAny({kDot, kEllipsis})) {
  }
  const std::size_t dots_end = pos_;
  if (DottedName() && Tok(kImport) && ImportFromTargets()) return Matched(start);
  pos_ = dots_end;
  if (dots_end > dots_start && Tok(kImport) && ImportFromTargets()) return Matched(start);
  pos_ = start;
  return nullptr;
}

D::Node* D::ImportFromTargets() {
  const std::size_t start = pos_;
  if (Tok(kLParen) && ImportedNames()) {
    Tok(kComma);
    if (Tok(kRParen)) return Matched(start);
  }
  pos_ = start;
  if (ImportedNames() && !Peek(kComma) && !raised_) return Matched(start);
  pos_ = start;
  if (Tok(kStar)) return Matched(start);
  if (explaining_ && ImportedNames() && Tok(kComma) && Tok(kNewline)) {
    RaiseHere("trailing comma not allowed without surrounding parentheses");
  }
  pos_ = start;
  return nullptr;
}

// ---- type aliases ------------------------------------------------------------------------------

D::Node* D::TypeAlias() {
  const std::size_t start = pos_;
  if (Soft(SoftKeyword::kType) && Tok(kName)) {
    Maybe(&D::TypeParams);
    if (Tok(kEqual) && Expression()) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::TypeParams() {
  const std::size_t start = pos_;
  if (Tok(kLBracket) && !Separated(&D::TypeParam).empty()) {
    Tok(kComma);
    if (Tok(kRBracket)) return Matched(start);
  }
  pos_ = start;
  return nullptr;
}

D::Node* D::TypeParam() { return Remember(Memo::kTypeParam, &D::TypeParamBody); }

D::Node* D::TypeParamBody() {
  const std::size_t start = pos_;
  if (Tok(kName)) {
    const std::size_t at = pos_;
    if (!Tok(kColon) || !Expression()) pos_ = at;
    return raised_ ? nullptr : Matched(start);
  }
  const bool tuple = Tok(kStar);
  if (!tuple && !Tok(kDoubleStar)) return nullptr;
  if (!Tok(kName)) return nullptr;
  // Both kinds refuse a bound in the first pass already.
  const std::size_t at = pos_;
  if (Tok(kColon)) {
    const SourceSpan colon = SpanOf(Last());
    if (Node* bound = Expression()) {
      return RaiseAt(UpToReached(colon),
                     fmt::format("cannot use {} with {}",
                                 bound->kind == ExprKind::kTuple ? "constraints" : "bound",
                                 tuple ? "TypeVarTuple" : "ParamSpec"));
    }
  }
  pos_ = at;
  return raised_ ? nullptr : Matched(start);
}

}  // namespace caisson::python
