// SPDX-License-Identifier: Apache-2.0
#include "workflow/block_size.h"

#include <algorithm>
#include <utility>

namespace caisson::workflow {
namespace {

using python::As;
using python::ConstantKind;
using python::Expr;
using python::ExprKind;
using python::List;
using python::Stmt;
using python::StmtKind;

// An instruction with an operand, and one without.
constexpr std::uint64_t kWithOperand = 2;
constexpr std::uint64_t kPlain = 1;

struct Cost {
  std::uint64_t size = 0;
  // Whether the artifact may compute it while it compiles: what then is left is one constant, and a
  // branch on it may be no branch.
  bool folded = false;
};

Cost CostOf(const Expr& expr);
std::uint64_t SizeOf(const Expr& expr) { return CostOf(expr).size; }

struct Sum {
  std::uint64_t size = 0;
  bool all_folded = true;
  bool any_folded = false;
};

Sum SumOf(List<Expr*> exprs) {
  Sum sum;
  for (const Expr* expr : exprs) {
    if (expr == nullptr) continue;
    const Cost cost = CostOf(*expr);
    sum.size += cost.size;
    sum.all_folded &= cost.folded;
    sum.any_folded |= cost.folded;
  }
  return sum;
}

Cost CostOfCall(const python::Call& call) {
  std::uint64_t size = SizeOf(*call.func) + SumOf(call.args).size + kWithOperand;
  for (const python::Keyword* keyword : call.keywords) size += SizeOf(*keyword->value) + kPlain;
  return {size};
}

Cost CostOfBinOp(const python::BinOp& op) {
  const Cost left = CostOf(*op.left);
  const Cost right = CostOf(*op.right);
  return {left.size + right.size + kPlain, left.folded && right.folded};
}

Cost CostOfCompare(const python::Compare& compare) {
  const Cost left = CostOf(*compare.left);
  const Sum right = SumOf(compare.comparators);
  return {left.size + right.size + kPlain * compare.comparators.size(),
          left.folded && right.all_folded};
}

Cost CostOfIfExp(const python::IfExp& expr) {
  const Cost test = CostOf(*expr.test);
  const std::uint64_t branches = SizeOf(*expr.body) + SizeOf(*expr.orelse);
  return {test.size + branches + 2 * kWithOperand, test.folded};
}

Cost Unfolded(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return {kPlain, true};
    case ExprKind::kBinOp:
      return CostOfBinOp(*As<python::BinOp>(&expr));
    case ExprKind::kUnaryOp:  // a `not` may turn a jump round instead
      return CostOf(*As<python::UnaryOp>(&expr)->operand);
    case ExprKind::kBoolOp: {
      const Sum parts = SumOf(As<python::BoolOp>(&expr)->values);
      return {parts.size + kWithOperand, parts.any_folded};
    }
    case ExprKind::kCompare:
      return CostOfCompare(*As<python::Compare>(&expr));
    case ExprKind::kIfExp:
      return CostOfIfExp(*As<python::IfExp>(&expr));
    case ExprKind::kCall:
      return CostOfCall(*As<python::Call>(&expr));
    case ExprKind::kAttribute:
      return {SizeOf(*As<python::Attribute>(&expr)->value) + kWithOperand};
    case ExprKind::kSubscript:
      return {SizeOf(*As<python::Subscript>(&expr)->value) +
              SizeOf(*As<python::Subscript>(&expr)->slice) + kPlain};
    case ExprKind::kList:
      return {SumOf(As<python::ListExpr>(&expr)->elts).size + kWithOperand};
    case ExprKind::kTuple: {
      const Sum elements = SumOf(As<python::Tuple>(&expr)->elts);
      return {elements.size + kWithOperand, elements.all_folded};
    }
    case ExprKind::kDict:
      return {SumOf(As<python::Dict>(&expr)->keys).size +
              SumOf(As<python::Dict>(&expr)->values).size + kWithOperand};
    case ExprKind::kNamedExpr:
      return {SizeOf(*As<python::NamedExpr>(&expr)->value) + 2 * kPlain};
    default:  // a name, or what becomes a call of code elsewhere
      return {kPlain};
  }
}

Cost CostOf(const Expr& expr) {
  const Cost cost = Unfolded(expr);
  return cost.folded ? Cost{kPlain, true} : cost;
}

// Storing what is on the stack.
std::uint64_t SizeOfStore(const Expr& target) {
  switch (target.kind) {
    case ExprKind::kAttribute:
      return SizeOf(*As<python::Attribute>(&target)->value) + kWithOperand;
    case ExprKind::kSubscript:
      return SizeOf(target);
    default:
      return kPlain;
  }
}

bool IsTrueConstant(const Expr& expr) {
  const auto* constant = python::IsA<python::Constant>(&expr);
  if (constant == nullptr) return false;
  return constant->constant == ConstantKind::kTrue ||
         (constant->constant == ConstantKind::kInt && constant->integer != 0);
}

// What follows it in its block is never reached, and no code is made of it.
bool Leaves(const Stmt& stmt) {
  return stmt.kind == StmtKind::kReturn || stmt.kind == StmtKind::kRaise ||
         stmt.kind == StmtKind::kBreak || stmt.kind == StmtKind::kContinue;
}
bool Leaves(List<Stmt*> block) {
  return std::ranges::any_of(block, [](const Stmt* stmt) { return Leaves(*stmt); });
}

class Measure {
 public:
  std::uint64_t Block(List<Stmt*> block) {
    std::uint64_t size = 0;
    for (const Stmt* stmt : block) {
      size += Statement(*stmt);
      if (Leaves(*stmt)) break;
    }
    return size;
  }

  std::vector<const Stmt*> Take() { return std::move(found_); }

 private:
  // Once a block is too long, so are all around it; one report is enough.
  std::uint64_t Crossed(const Stmt& stmt, std::uint64_t size, std::uint64_t limit) {
    if (size <= limit) return size;
    found_.push_back(&stmt);
    return 0;
  }

  std::uint64_t Statement(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kExpr: {
        const Cost value = CostOf(*As<python::ExprStmt>(&stmt)->value);
        return value.folded ? 0 : value.size + kPlain;
      }
      case StmtKind::kAssign:
        return Assignment(*As<python::Assign>(&stmt));
      case StmtKind::kAnnAssign: {
        const auto& assign = *As<python::AnnAssign>(&stmt);
        return assign.value == nullptr ? 0 : SizeOf(*assign.value) + SizeOfStore(*assign.target);
      }
      case StmtKind::kAugAssign:
        return SizeOfStore(*As<python::AugAssign>(&stmt)->target) +
               SizeOf(*As<python::AugAssign>(&stmt)->value) + 2 * kPlain;
      case StmtKind::kReturn: {
        const Expr* value = As<python::Return>(&stmt)->value;
        return (value == nullptr ? kPlain : SizeOf(*value)) + kPlain;
      }
      case StmtKind::kRaise: {
        const Expr* exc = As<python::Raise>(&stmt)->exc;
        return (exc == nullptr ? 0 : SizeOf(*exc)) + kPlain;
      }
      case StmtKind::kIf:
        return If(*As<python::If>(&stmt));
      case StmtKind::kWhile:
        return While(*As<python::While>(&stmt));
      case StmtKind::kFor:
        return For(*As<python::For>(&stmt));
      case StmtKind::kWith:
        return With(*As<python::With>(&stmt));
      case StmtKind::kTry:
        return Try(*As<python::Try>(&stmt));
      case StmtKind::kFunctionDef:
        (void)Block(As<python::FunctionDef>(&stmt)->body);
        return 2 * kPlain;
      case StmtKind::kClassDef:
        (void)Block(As<python::ClassDef>(&stmt)->body);
        return 2 * kPlain;
      default:
        return 0;
    }
  }

  static std::uint64_t Assignment(const python::Assign& assign) {
    std::uint64_t size = SizeOf(*assign.value);
    for (const Expr* target : assign.targets) size += SizeOfStore(*target);
    return size;
  }

  std::uint64_t If(const python::If& stmt) {
    const Cost test = CostOf(*stmt.test);
    if (test.folded) return 0;
    const std::uint64_t body = Crossed(stmt, Block(stmt.body), kMaxJumpBytes);
    std::uint64_t orelse = Block(stmt.orelse);
    // The way out of the first part crosses the second one, if it is ever taken.
    if (!stmt.orelse.empty() && !Leaves(stmt.body)) {
      orelse = Crossed(stmt, orelse, kMaxJumpBytes) + kWithOperand;
    }
    return test.size + kWithOperand + body + orelse;
  }

  std::uint64_t While(const python::While& stmt) {
    if (CostOf(*stmt.test).folded && !IsTrueConstant(*stmt.test)) return 0;
    std::uint64_t body = Block(stmt.body);
    // An endless loop whose end is never reached does not jump back from there.
    if (!IsTrueConstant(*stmt.test) || !Leaves(stmt.body)) {
      body = Crossed(stmt, body, kMaxJumpBytes);
    }
    return body + Block(stmt.orelse);
  }

  std::uint64_t For(const python::For& stmt) {
    std::uint64_t body = Block(stmt.body);
    if (!Leaves(stmt.body)) body = Crossed(stmt, body, kMaxJumpBytes);
    return SizeOf(*stmt.iter) + kWithOperand + body + Block(stmt.orelse);
  }

  std::uint64_t With(const python::With& stmt) {
    std::uint64_t size = Crossed(stmt, Block(stmt.body), kMaxHandlerJumpBytes);
    for (const python::WithItem* item : stmt.items) size += SizeOf(*item->context_expr);
    return size;
  }

  std::uint64_t Try(const python::Try& stmt) {
    std::uint64_t size = Crossed(stmt, Block(stmt.body), kMaxHandlerJumpBytes);
    for (const python::ExceptHandler* handler : stmt.handlers) {
      const std::uint64_t body = Block(handler->body);
      // An exception of another type goes on behind it.
      size += handler->type == nullptr ? body : Crossed(stmt, body, kMaxJumpBytes);
    }
    return size + Block(stmt.orelse) + Block(stmt.finalbody);
  }

  std::vector<const Stmt*> found_;
};

}  // namespace

std::vector<const Stmt*> FindLongBlocks(const python::FunctionDef& run) {
  Measure measure;
  (void)measure.Block(run.body);
  std::vector<const Stmt*> found = measure.Take();
  std::ranges::sort(found, {},
                    [](const Stmt* stmt) { return std::pair(stmt->span.line, stmt->span.column); });
  return found;
}

}  // namespace caisson::workflow
