// SPDX-License-Identifier: Apache-2.0
// Whole functions and their statements.
#include "workflow/migrate/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"
#include "workflow/migrate/foreign.h"

namespace caisson::workflow::migrate {

using python::As;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

namespace {

// Modules whose uses only tell somebody something.
bool IsLogging(const python::Expr* callee, const Facts& facts) {
  if (facts.ImportedAs(callee).starts_with("logging.")) return true;
  const auto* root = RootName(callee);
  if (root == nullptr) return false;
  const auto found = facts.constants.find(root->id);
  if (found == facts.constants.end()) return false;
  const auto* made = IsA<python::Call>(found->second.value);
  return made != nullptr && facts.ImportedAs(made->func) == "logging.getLogger";
}

// Evaluating it has no effect, as far as methods of built-in types and the clock go.
bool HasNoEffect(const python::Expr& expr) {
  bool none = true;
  python::WalkBreadthFirst(&expr, [&none](NodeRef node) {
    if (node.expr() == nullptr) return;
    const ExprKind kind = node.expr()->kind;
    if (kind == ExprKind::kNamedExpr || kind == ExprKind::kAwait || kind == ExprKind::kYield ||
        kind == ExprKind::kYieldFrom) {
      none = false;
    }
    const auto* call = IsA<python::Call>(node.expr());
    if (call == nullptr) return;
    static constexpr std::string_view kHarmless[] = {
        "format", "get",   "isoformat", "items", "join",   "keys",   "len", "list",     "lower",
        "max",    "min",   "repr",      "round", "set",    "sorted", "str", "strftime", "strip",
        "sum",    "title", "type",      "upper", "values", "dict",   "int", "float"};
    const auto* method = IsA<python::Attribute>(call->func);
    const auto* name = IsA<python::Name>(call->func);
    const std::string_view callee = method != nullptr ? method->attr
                                    : name != nullptr ? name->id
                                                      : "";
    none &= std::ranges::find(kHarmless, callee) != std::end(kHarmless);
  });
  return none;
}

NameSet DictsOf(NodeRef root) {
  NameSet dicts;
  const auto add = [&dicts](const python::Expr* target, bool dict) {
    const auto* name = IsA<python::Name>(target);
    if (name != nullptr && dict) dicts.insert(name->id);
  };
  python::WalkBreadthFirst(root, [&](NodeRef node) {
    if (const auto* assign = IsA<python::Assign>(node.stmt())) {
      for (const python::Expr* target : assign->targets) add(target, GivesDict(assign->value));
    } else if (const auto* annotated = IsA<python::AnnAssign>(node.stmt())) {
      const auto* generic = IsA<python::Subscript>(annotated->annotation);
      const std::string type =
          DottedName(generic != nullptr ? generic->value : annotated->annotation);
      add(annotated->target, GivesDict(annotated->value) || type == "dict" || type == "Dict");
    }
  });
  return dicts;
}

}  // namespace

std::string BodyEdits::Use(Support support) {
  support_.insert(support);
  return NameOf(support);
}

std::string BodyEdits::NameOf(Support support) const {
  std::string name(SupportName(support));
  while (subject_.facts.names.contains(name)) name += '_';
  return name;
}

void BodyEdits::AddFunction(const python::FunctionDef& function, Role role, std::string_view state,
                            std::string_view config) {
  Scope scope{.role = role,
              .state = state,
              .config = config,
              .dicts = DictsOf(&function),
              .skipped = {},
              .decided = {}};
  for (const python::Expr* decorator : function.decorator_list) {
    const std::string meaning = subject_.facts.ImportedAs(
        decorator->kind == ExprKind::kCall ? As<python::Call>(decorator)->func : decorator);
    Decide(errors::kMigrateConstruct, decorator->span,
           fmt::format(
               "'{}' is decorated: {}", function.name,
               meaning.empty() ? "decorators are not allowed" : DescribeForeign(meaning).message),
           meaning.empty() ? "take the decorator away, and write out what it does"
                           : DescribeForeign(meaning).hint);
  }
  NameSet bound = Bindings(function.body);
  if (subject_.fields.own() && bound.contains(state)) {
    Decide(errors::kMigrateState, function.span,
           fmt::format("'{}' gives its parameter '{}' another value", function.name, state),
           "use a variable of another name");
  }
  bound.merge(Parameters(*function.args));
  if (bound.contains("self")) {
    Decide(errors::kMigrateConstruct, function.span,
           fmt::format("'{}' has a variable called self", function.name),
           "self is the node: call the variable otherwise");
  }
  if (role != Role::kHelper || updaters_.contains(&function)) AddReturns(function.body, scope);
  if (role == Role::kHelper) {
    StripAnnotations(*function.args, scope);
    if (function.returns != nullptr) {
      const Range returns = Of(*function.returns);
      std::size_t begin = subject_.source.text().rfind("->", returns.begin);
      while (begin > 0 && subject_.source.text()[begin - 1] == ' ') --begin;
      edits_.Erase({begin, returns.end});
    }
    if (function.kind == python::StmtKind::kAsyncFunctionDef) {
      const std::size_t begin = subject_.source.Of(function.span).begin;
      edits_.Erase({begin, subject_.source.text().find("def", begin)});
    }
    for (const python::Expr* value : function.args->defaults) AddScope(value, {}, scope);
  }
  AddBlock(function.body, scope);
  for (const python::Stmt* statement : function.body) {
    AddScope(statement, bound, scope);
    DecideLateUses(statement, scope);
  }
}

void BodyEdits::AddLambda(const python::Lambda& lambda, Role role, std::string_view state) {
  Scope scope{
      .role = role, .state = state, .config = {}, .dicts = {}, .skipped = {}, .decided = {}};
  if (role == Role::kRoute) {
    edits_.Wrap(Of(*lambda.body), "{\"route\": ", "}");
  } else {
    AddUpdate(lambda.body, scope);
  }
  AddScope(std::as_const(lambda.body), Parameters(*lambda.args), scope);
}

void BodyEdits::AddScope(NodeRef root, const NameSet& bound, Scope scope_in) {
  Scope& scope = scope_in;
  AddExpressions(root, scope);
  AddGlobals(root, bound, scope);
  AddStateUses(root, bound, scope);
  decided_.insert(scope.decided.begin(), scope.decided.end());
}

std::vector<const python::FunctionDef*> BodyEdits::AddHelpers() {
  std::vector<const python::FunctionDef*> helpers;
  while (!waiting_.empty()) {
    const python::FunctionDef* helper = waiting_.back();
    waiting_.pop_back();
    helpers.push_back(helper);
    AddFunction(*helper, Role::kHelper, helpers_[helper].value_or(""), {});
  }
  std::ranges::sort(helpers, {}, [](const python::FunctionDef* each) { return each->span.line; });
  return helpers;
}

void BodyEdits::StripAnnotations(const python::Arguments& arguments, Scope& scope) {
  const auto strip = [&](const python::Arg* arg) {
    if (arg == nullptr || arg->annotation == nullptr) return;
    const Range whole = subject_.source.Of(arg->span);
    edits_.Erase({whole.begin + arg->arg.size(), Of(*arg->annotation).end});
    Skip(std::as_const(arg->annotation), scope);
  };
  for (const auto list : {arguments.posonlyargs, arguments.args, arguments.kwonlyargs}) {
    for (const python::Arg* arg : list) strip(arg);
  }
  strip(arguments.vararg);
  strip(arguments.kwarg);
}

void BodyEdits::Skip(NodeRef root, Scope& scope) {
  python::WalkBreadthFirst(root, [&scope](NodeRef node) {
    if (node.expr() != nullptr) scope.skipped.insert(node.expr());
  });
}

void BodyEdits::Remove(const python::Stmt& statement, bool alone) {
  const Source& source = subject_.source;
  Range range = source.Of(statement.span);
  const std::size_t start = source.LineStart(statement.span.line);
  const bool first = source.text().substr(start, range.begin - start).find_first_not_of(" \t") ==
                     std::string_view::npos;
  const std::size_t end = source.EndWithComment(statement.span);
  const bool last = end == source.text().size() || source.text()[end] == '\n';
  if (alone || !first || !last) return edits_.Replace(range, "pass");
  edits_.Erase({start, std::min(end + 1, source.text().size())});
}

void BodyEdits::AddBlock(python::List<python::Stmt*> block, Scope& scope) {
  const auto removable = [&](const python::Stmt* statement) {
    const auto* annotated = IsA<python::AnnAssign>(statement);
    if (annotated != nullptr && annotated->value == nullptr) return true;
    if (statement->kind == python::StmtKind::kImport ||
        statement->kind == python::StmtKind::kImportFrom)
      return true;
    const auto* expression = IsA<python::ExprStmt>(statement);
    const auto* call = expression == nullptr ? nullptr : IsA<python::Call>(expression->value);
    return call != nullptr &&
           (DottedName(call->func) == "print" || IsLogging(call->func, subject_.facts));
  };
  const bool all = std::ranges::all_of(block, removable);
  bool first = true;
  for (const python::Stmt* statement : block) {
    AddStatement(*statement, all && first, scope);
    first = false;
  }
}

void BodyEdits::AddStatement(const python::Stmt& statement, bool alone, Scope& scope) {
  using python::StmtKind;
  switch (statement.kind) {
    case StmtKind::kImport:
    case StmtKind::kImportFrom:
      return Remove(statement, alone);
    case StmtKind::kGlobal:
      return Decide(errors::kMigrateModuleState, statement.span,
                    "a variable of the module is changed by a node: it would outlive the run",
                    "return it in the update and read it from node_results, or keep it in a store");
    case StmtKind::kAnnAssign: {
      const auto* annotated = As<python::AnnAssign>(&statement);
      Skip(std::as_const(annotated->annotation), scope);
      if (annotated->value == nullptr) return Remove(statement, alone);
      return edits_.Erase({Of(*annotated->target).end, Of(*annotated->annotation).end});
    }
    case StmtKind::kExpr:
      DropPrint(*As<python::ExprStmt>(&statement), alone, scope);
      return;
    case StmtKind::kFunctionDef:
    case StmtKind::kAsyncFunctionDef: {
      const auto* function = As<python::FunctionDef>(&statement);
      StripAnnotations(*function->args, scope);
      if (function->returns != nullptr) Skip(std::as_const(function->returns), scope);
      return AddBlock(function->body, scope);
    }
    case StmtKind::kFor:
      AddBlock(As<python::For>(&statement)->body, scope);
      if (!As<python::For>(&statement)->orelse.empty())
        AddBlock(As<python::For>(&statement)->orelse, scope);
      return;
    case StmtKind::kWhile:
      AddBlock(As<python::While>(&statement)->body, scope);
      if (!As<python::While>(&statement)->orelse.empty())
        AddBlock(As<python::While>(&statement)->orelse, scope);
      return;
    case StmtKind::kIf:
      AddBlock(As<python::If>(&statement)->body, scope);
      if (!As<python::If>(&statement)->orelse.empty())
        AddBlock(As<python::If>(&statement)->orelse, scope);
      return;
    case StmtKind::kWith:
      return AddBlock(As<python::With>(&statement)->body, scope);
    case StmtKind::kTry: {
      const auto* attempt = As<python::Try>(&statement);
      AddBlock(attempt->body, scope);
      for (const python::ExceptHandler* handler : attempt->handlers) AddBlock(handler->body, scope);
      if (!attempt->orelse.empty()) AddBlock(attempt->orelse, scope);
      if (!attempt->finalbody.empty()) AddBlock(attempt->finalbody, scope);
      return;
    }
    case StmtKind::kAsyncFor:
    case StmtKind::kAsyncWith:
      return Decide(errors::kMigrateConstruct, statement.span, "waits inside a node",
                    "a node computes and does not wait: use a built-in node for what it waits for");
    default:
      return;
  }
}

bool BodyEdits::DropPrint(const python::ExprStmt& statement, bool alone, Scope& scope) {
  const auto* call = IsA<python::Call>(statement.value);
  if (call == nullptr) return false;
  if (DottedName(call->func) != "print" && !IsLogging(call->func, subject_.facts)) return false;
  const auto harmless = [](const auto& values) {
    return std::ranges::all_of(values, [](const python::Expr* each) { return HasNoEffect(*each); });
  };
  const bool no_effect =
      harmless(call->args) && std::ranges::all_of(call->keywords, [](const python::Keyword* each) {
        return HasNoEffect(*each->value);
      });
  if (!no_effect) {
    Decide(errors::kMigrateConstruct, statement.span,
           "prints what a call gives, and the call may do more than that",
           "take the print away, and keep the call if it is needed");
    scope.skipped.insert(call->func);
    return true;
  }
  Skip(std::as_const(statement.value), scope);
  Remove(statement, alone);
  return true;
}

}  // namespace caisson::workflow::migrate
