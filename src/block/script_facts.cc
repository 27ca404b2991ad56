// SPDX-License-Identifier: Apache-2.0
#include "block/script_facts.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "block/fstring_syntax.h"
#include "python/walk.h"

namespace caisson::block {
namespace {

using python::As;
using python::Expr;
using python::ExprKind;
using python::IsA;
using python::NodeRef;
using python::Stmt;
using python::StmtKind;

// Where a node stands.
struct Context {
  bool in_function = false;
  bool in_async_function = false;
  bool in_loop = false;
  bool in_class_only = false;  // directly in a class body
  bool uncertain = false;      // may not be executed, or its failure be caught
};

struct Item {
  NodeRef node;
  Context context;
};

bool CatchesImportErrors(const Expr* type) {
  if (type == nullptr) return true;
  if (const auto* tuple = IsA<python::Tuple>(type)) {
    return std::ranges::any_of(tuple->elts, CatchesImportErrors);
  }
  constexpr std::array<std::string_view, 4> kNames = {"ImportError", "ModuleNotFoundError",
                                                      "Exception", "BaseException"};
  const auto* name = IsA<python::Name>(type);
  return name != nullptr && std::ranges::find(kNames, name->id) != kNames.end();
}

// Depth first in source order, with a stack of its own.
class Walker {
 public:
  explicit Walker(ScriptFacts& facts) : facts_(facts) {}

  void Walk(const python::Module& module) {
    Push(module.body, {});
    Turn(0);
    while (!stack_.empty()) {
      const Item item = stack_.back();
      stack_.pop_back();
      const std::size_t base = stack_.size();
      Visit(item);
      Turn(base);
    }
  }

 private:
  void Visit(const Item& item) {
    if (const Stmt* stmt = item.node.stmt()) return VisitStatement(stmt, item.context);
    if (const Expr* expr = item.node.expr()) return VisitExpression(expr, item.context);
    if (const auto* handler = item.node.except_handler()) {
      if (handler->type != nullptr) Push(handler->type, item.context);
      return Push(handler->body, Uncertain(item.context));
    }
    const auto* comprehension = item.node.comprehension();
    if (comprehension != nullptr && comprehension->is_async) {
      NoteAwait(comprehension->target->span, item.context);
    }
    PushChildren(item.node,
                 item.node.match_case() == nullptr ? item.context : Uncertain(item.context));
  }

  void VisitStatement(const Stmt* stmt, const Context& context) {
    switch (stmt->kind) {
      case StmtKind::kFunctionDef:
      case StmtKind::kAsyncFunctionDef:
        return VisitFunction(As<python::FunctionDef>(stmt), context);
      case StmtKind::kClassDef:
        return VisitClass(As<python::ClassDef>(stmt), context);
      case StmtKind::kFor:
      case StmtKind::kAsyncFor:
        return VisitFor(As<python::For>(stmt), context);
      case StmtKind::kWhile:
        return VisitWhile(As<python::While>(stmt), context);
      case StmtKind::kTry:
      case StmtKind::kTryStar:
        return VisitTry(As<python::Try>(stmt), context);
      case StmtKind::kIf:
        return PushChildren(stmt, Uncertain(context));
      case StmtKind::kImport:
        for (const auto* name : As<python::Import>(stmt)->names) {
          NoteImport(name->name, stmt, context);
        }
        return;
      case StmtKind::kImportFrom: {
        const auto* import = As<python::ImportFrom>(stmt);
        if (import->level == 0) NoteImport(import->module, stmt, context);
        return;
      }
      default:
        CheckPlace(stmt, context);
        return PushChildren(stmt, context);
    }
  }

  void CheckPlace(const Stmt* stmt, const Context& context) {
    if (stmt->kind == StmtKind::kReturn && (!context.in_function || context.in_class_only)) {
      Misplaced("'return' outside function", stmt->span);
    } else if (stmt->kind == StmtKind::kBreak && !context.in_loop) {
      Misplaced("'break' outside loop", stmt->span);
    } else if (stmt->kind == StmtKind::kContinue && !context.in_loop) {
      Misplaced("'continue' not properly in loop", stmt->span);
    } else if (stmt->kind == StmtKind::kNonlocal && !context.in_function) {
      Misplaced("nonlocal declaration not allowed at module level", stmt->span);
    } else if (stmt->kind == StmtKind::kAsyncWith) {
      NoteAwait(stmt->span, context);
    } else if (stmt->kind == StmtKind::kTypeAlias) {
      facts_.newer.push_back({"a type statement", 12, stmt->span});
    }
  }

  void VisitFunction(const python::FunctionDef* function, const Context& context) {
    NoteTypeParameters(function->type_params);
    Push(function->decorator_list, context);
    Push(function->args, context);
    if (function->returns != nullptr) Push(function->returns, context);
    Push(function->body, {.in_function = true,
                          .in_async_function = function->kind == StmtKind::kAsyncFunctionDef,
                          .uncertain = true});
  }

  void VisitClass(const python::ClassDef* definition, const Context& context) {
    NoteTypeParameters(definition->type_params);
    Push(definition->decorator_list, context);
    Push(definition->bases, context);
    Push(definition->keywords, context);
    Context body = context;
    body.in_class_only = true;
    body.in_loop = false;
    Push(definition->body, body);
  }

  void VisitFor(const python::For* loop, const Context& context) {
    if (loop->kind == StmtKind::kAsyncFor) NoteAwait(loop->span, context);
    Push(loop->target, context);
    Push(loop->iter, context);
    Push(loop->body, InLoop(context));
    Push(loop->orelse, Uncertain(context));
  }

  void VisitWhile(const python::While* loop, const Context& context) {
    Push(loop->test, context);
    Push(loop->body, InLoop(context));
    Push(loop->orelse, Uncertain(context));
  }

  void VisitTry(const python::Try* statement, const Context& context) {
    const bool guarded = std::ranges::any_of(statement->handlers, [](const auto* handler) {
      return CatchesImportErrors(handler->type);
    });
    Push(statement->body, guarded ? Uncertain(context) : context);
    Push(statement->handlers, context);
    Push(statement->orelse, Uncertain(context));
    Push(statement->finalbody, context);
  }

  void VisitExpression(const Expr* expr, const Context& context) {
    switch (expr->kind) {
      case ExprKind::kLambda: {
        Push(As<python::Lambda>(expr)->args, context);
        return Push(As<python::Lambda>(expr)->body, {.in_function = true, .uncertain = true});
      }
      case ExprKind::kAwait:
        NoteAwait(expr->span, context);
        break;
      case ExprKind::kYield:
      case ExprKind::kYieldFrom:
        if (!context.in_function || context.in_class_only) {
          Misplaced("'yield' outside function", expr->span);
        }
        break;
      case ExprKind::kName: {
        const std::string_view id = As<python::Name>(expr)->id;
        facts_.may_call_done |= id == "done" || id == "exec" || id == "eval" || id == "globals";
        break;
      }
      default:
        break;
    }
    PushChildren(expr, context);
  }

  void NoteAwait(const SourceSpan& span, const Context& context) {
    if (context.in_async_function && !context.in_class_only) return;
    if (context.in_function || context.in_class_only) {
      return Misplaced("'await' outside async function", span);
    }
    if (!facts_.top_level_await.known()) facts_.top_level_await = span;
  }

  void NoteImport(std::string_view module, const Stmt* stmt, const Context& context) {
    facts_.imports.push_back(
        {std::string(module.substr(0, module.find('.'))), stmt->span, !context.uncertain});
  }

  void NoteTypeParameters(python::List<python::TypeParam*> parameters) {
    if (!parameters.empty()) {
      facts_.newer.push_back({"a list of type parameters", 12, parameters[0]->span});
    }
  }

  void Misplaced(const char* message, const SourceSpan& span) {
    facts_.misplaced.push_back({message, span});
  }

  static Context Uncertain(Context context) {
    context.uncertain = true;
    return context;
  }
  static Context InLoop(Context context) {
    context.in_loop = true;
    return Uncertain(context);
  }

  void Push(NodeRef node, const Context& context) { stack_.push_back({node, context}); }
  template <typename T>
  void Push(python::List<T*> nodes, const Context& context) {
    for (const T* node : nodes) {
      if (node != nullptr) stack_.push_back({node, context});
    }
  }
  void PushChildren(NodeRef node, const Context& context) {
    python::ForEachChild(node, [&](NodeRef child) { stack_.push_back({child, context}); });
  }
  // What was pushed last in source order comes off first in source order.
  void Turn(std::size_t base) {
    std::reverse(stack_.begin() + static_cast<std::ptrdiff_t>(base), stack_.end());
  }

  ScriptFacts& facts_;
  std::vector<Item> stack_;
};

// `import x` and `from x import`, at the start of a line.
std::string_view GuessImport(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\f");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  const std::size_t keyword = line.starts_with("import ") ? 7 : line.starts_with("from ") ? 5 : 0;
  if (keyword == 0) return {};
  line.remove_prefix(std::min(line.find_first_not_of(" \t", keyword), line.size()));
  const auto* end = std::ranges::find_if(
      line, [](char c) { return c != '_' && std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return line.substr(0, static_cast<std::size_t>(end - line.begin()));
}

void GuessImports(std::string_view source, ScriptFacts& facts) {
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view module = GuessImport(source.substr(0, end));
    if (!module.empty()) facts.imports.push_back({std::string(module), {}, false});
    source.remove_prefix(std::min(end + 1, source.size()));
  }
}

}  // namespace

ScriptFacts ReadScript(std::string_view source) {
  ScriptFacts facts;
  auto tree = python::Parse(source);
  if (!tree) {
    facts.syntax_error = std::move(tree).error();
    GuessImports(source, facts);
    return facts;
  }
  Walker(facts).Walk(tree->module());
  FindNewerFStrings(source, facts.newer);
  return facts;
}

std::vector<std::string> ImportNames(const ScriptFacts& facts) {
  std::vector<std::string> names;
  for (const ImportedModule& module : facts.imports) {
    if (std::ranges::find(names, module.name) == names.end()) names.push_back(module.name);
  }
  return names;
}

}  // namespace caisson::block
