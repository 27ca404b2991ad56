// SPDX-License-Identifier: Apache-2.0
#include "workflow/capability.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "errors/body.h"
#include "workflow/block_size.h"

namespace caisson::workflow {
namespace {

using python::As;
using python::ExprContext;
using python::ExprKind;
using python::NodeRef;
using python::StmtKind;

// The artifact's bytecode keeps counts of arguments in one byte and the size of a function's stack
// in few more, without a check: beyond these it runs, wrongly.
constexpr std::size_t kMaxArguments = 255;
constexpr std::size_t kMaxElements = 30'000;

class SyntaxChecker {
 public:
  SyntaxChecker(const python::FunctionDef& run, std::string_view node_id,
                std::vector<Diagnostic>& out)
      : run_(run), prefix_("CodeNode '" + std::string(node_id) + "' body uses "), out_(out) {}

  void CheckBlocks() {
    for (const python::Stmt* stmt : FindLongBlocks(run_)) {
      const bool handler = stmt->kind == StmtKind::kWith || stmt->kind == StmtKind::kTry;
      Report(Keyword(*stmt, KeywordWidth(*stmt)),
             "a block of more than " +
                 std::to_string(handler ? kMaxHandlerJumpBytes : kMaxJumpBytes) +
                 " bytes of bytecode (some thousand statements)",
             "move parts of the block into functions, or the data into a list to loop over");
    }
  }

  void Check(NodeRef node) {
    if (node.stmt() != nullptr) CheckStmt(*node.stmt());
    if (node.expr() != nullptr) CheckExpr(*node.expr());
    if (node.arg() != nullptr) CheckStarred(node.arg()->annotation);
    const python::Comprehension* comprehension = node.comprehension();
    if (comprehension != nullptr && comprehension->is_async) {
      Report(comprehension->target->span, "an async comprehension", "write it without 'async'");
    }
  }

 private:
  void Report(SourceSpan span, std::string what, std::string hint) {
    out_.push_back(
        {.code = errors::kBodyUnsupportedSyntax,
         .span = span,
         .message = prefix_ + std::move(what) + ", which the MicroPython runtime cannot compile",
         .hint = std::move(hint),
         .peer_accepts = true});
  }

  void CheckStmt(const python::Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kMatch:
        return Report(Keyword(stmt, 5), "a match statement", "use if and elif");
      case StmtKind::kTryStar:
        return Report(Keyword(stmt, 3), "except*", "use except");
      case StmtKind::kTypeAlias:
        return Report(stmt.span, "a type alias", "remove it; types are not checked here");
      case StmtKind::kFunctionDef:
      case StmtKind::kAsyncFunctionDef:
        return CheckFunction(*As<python::FunctionDef>(&stmt));
      case StmtKind::kClassDef:
        CheckTypeParams(As<python::ClassDef>(&stmt)->type_params);
        return CheckDecorators(As<python::ClassDef>(&stmt)->decorator_list);
      case StmtKind::kDelete:
        for (const python::Expr* target : As<python::Delete>(&stmt)->targets) {
          if (target->kind != ExprKind::kList) continue;
          Report(target->span, "del of a list display", "name the variables one by one");
        }
        return;
      default:
        return;
    }
  }

  void CheckFunction(const python::FunctionDef& function) {
    if (&function == &run_) return;  // its signature is replaced
    CheckTypeParams(function.type_params);
    CheckDecorators(function.decorator_list);
    CheckArguments(*function.args);
  }

  void CheckArguments(const python::Arguments& args) {
    if (args.posonlyargs.empty()) return;
    Report(args.posonlyargs.front()->span, "positional-only parameters", "remove the '/'");
  }

  void CheckTypeParams(python::List<python::TypeParam*> params) {
    if (params.empty()) return;
    Report(params.front()->span, "type parameters", "remove them; types are not checked here");
  }

  void CheckDecorators(python::List<python::Expr*> decorators) {
    for (const python::Expr* decorator : decorators) {
      if (!IsPlainDecorator(*decorator)) {
        Report(decorator->span, "an expression as decorator",
               "give the decorator a name first; 'name', 'a.b' and 'name(...)' work");
      }
    }
  }

  // `a.b.c` or `a.b.c(...)`.
  static bool IsPlainDecorator(const python::Expr& decorator) {
    const python::Expr* expr = &decorator;
    if (const auto* call = python::IsA<python::Call>(expr)) expr = call->func;
    while (const auto* attribute = python::IsA<python::Attribute>(expr)) expr = attribute->value;
    return expr->kind == ExprKind::kName;
  }

  void CheckExpr(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kList:
        if (As<python::ListExpr>(&expr)->ctx == ExprContext::kLoad) {
          CheckElements(expr, As<python::ListExpr>(&expr)->elts);
        }
        return;
      case ExprKind::kTuple:
        if (As<python::Tuple>(&expr)->ctx == ExprContext::kLoad) {
          CheckElements(expr, As<python::Tuple>(&expr)->elts);
        }
        return;
      case ExprKind::kSet:
        return CheckElements(expr, As<python::Set>(&expr)->elts);
      case ExprKind::kDict:
        return CheckDict(*As<python::Dict>(&expr));
      case ExprKind::kLambda:
        return CheckArguments(*As<python::Lambda>(&expr)->args);
      case ExprKind::kFormattedValue:
        return CheckField(*As<python::FormattedValue>(&expr));
      case ExprKind::kCall:
        return CheckCounts(*As<python::Call>(&expr));
      default:
        return;
    }
  }

  void CheckCounts(const python::Call& call) {
    if (call.args.size() <= kMaxArguments && call.keywords.size() <= kMaxArguments) return;
    Report(call.span, "a call with more than 255 arguments", "pass a list or a dict");
  }

  void CheckCount(const python::Expr& display, std::size_t count) {
    if (count <= kMaxElements) return;
    Report(display.span, "a display of more than 30000 elements",
           "put the data into the node's config or the state");
  }

  void CheckStarred(const python::Expr* expr) {
    if (expr == nullptr || expr->kind != ExprKind::kStarred) return;
    Report(expr->span, "'*' in a display",
           "build the list with list(a) + list(b), or extend() it; '*' works in calls and on the "
           "left of an assignment");
  }

  void CheckElements(const python::Expr& display, python::List<python::Expr*> elements) {
    CheckCount(display, elements.size());
    for (const python::Expr* element : elements) CheckStarred(element);
  }

  void CheckDict(const python::Dict& dict) {
    CheckCount(dict, dict.keys.size());
    for (std::size_t i = 0; i < dict.keys.size(); ++i) {
      if (dict.keys[i] != nullptr) continue;
      Report(dict.values[i]->span, "'**' in a dict display",
             "copy with dict(a) and then update(b)");
    }
  }

  void CheckField(const python::FormattedValue& field) {
    if (field.conversion == 'a') {
      Report(field.span, "the conversion '!a'", "use '!r'");
    }
    std::vector<Part> pending{{field.value, false}};
    while (!pending.empty()) {
      const Part part = pending.back();
      pending.pop_back();
      CheckPart(part, pending);
    }
  }

  // The artifact finds the end of a replacement field by its text: a colon ends it unless brackets
  // or braces (not parentheses) are open, and a string with a prefix is not read as one.
  struct Part {
    NodeRef node;
    bool in_brackets;
  };
  void CheckPart(const Part& part, std::vector<Part>& pending) {
    const python::Expr* expr = part.node.expr();
    bool in_brackets = part.in_brackets;
    if (expr != nullptr) {
      if (expr->kind == ExprKind::kJoinedStr) {
        return Report(expr->span, "an f-string inside an f-string",
                      "assign the inner one to a variable first");
      }
      if (!in_brackets && expr->kind == ExprKind::kLambda) {
        return Report(expr->span, "a lambda inside an f-string", "assign it to a variable first");
      }
      if (!in_brackets && expr->kind == ExprKind::kNamedExpr) {
        return Report(expr->span, "':=' inside an f-string", "assign the variable before");
      }
      in_brackets = in_brackets || OpensBrackets(expr->kind);
      if (const auto* subscript = python::IsA<python::Subscript>(expr)) {
        pending.push_back({subscript->value, part.in_brackets});
        pending.push_back({subscript->slice, true});
        return;
      }
    }
    python::ForEachChild(part.node,
                         [&](NodeRef child) { pending.push_back({child, in_brackets}); });
  }

  static bool OpensBrackets(ExprKind kind) {
    return kind == ExprKind::kList || kind == ExprKind::kListComp || kind == ExprKind::kSet ||
           kind == ExprKind::kSetComp || kind == ExprKind::kDict || kind == ExprKind::kDictComp;
  }

  // Of a statement with a block.
  static std::uint32_t KeywordWidth(const python::Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kIf:
        return 2;
      case StmtKind::kWhile:
        return 5;
      case StmtKind::kWith:
        return 4;
      default:  // for, try
        return 3;
    }
  }

  static SourceSpan Keyword(const python::Stmt& stmt, std::uint32_t width) {
    return {stmt.span.line, stmt.span.column, stmt.span.line, stmt.span.column + width};
  }

  const python::FunctionDef& run_;
  std::string prefix_;
  std::vector<Diagnostic>& out_;
};

}  // namespace

namespace internal {

void CheckGuestSyntax(const python::FunctionDef& run, std::span<const NodeRef> nodes,
                      std::string_view node_id, std::vector<Diagnostic>& out) {
  SyntaxChecker checker(run, node_id, out);
  for (const NodeRef node : nodes) checker.Check(node);
  checker.CheckBlocks();
}

}  // namespace internal

void CheckCapabilities(const python::FunctionDef& run, std::span<const NodeRef> nodes,
                       std::string_view node_id, std::vector<Diagnostic>& out) {
  internal::CheckGuestSyntax(run, nodes, node_id, out);
  internal::CheckGuestUse(nodes, node_id, out);
}

}  // namespace caisson::workflow
