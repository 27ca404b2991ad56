// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/names.h"

#include <string>
#include <utility>

namespace caisson::workflow::migrate {
namespace {

using python::As;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

bool IsComprehension(const python::Expr& expr) {
  return expr.kind == ExprKind::kListComp || expr.kind == ExprKind::kSetComp ||
         expr.kind == ExprKind::kDictComp || expr.kind == ExprKind::kGeneratorExp;
}

python::List<python::Comprehension*> Generators(const python::Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kListComp:
      return As<python::ListComp>(&expr)->generators;
    case ExprKind::kSetComp:
      return As<python::SetComp>(&expr)->generators;
    case ExprKind::kDictComp:
      return As<python::DictComp>(&expr)->generators;
    default:
      return As<python::GeneratorExp>(&expr)->generators;
  }
}

// Collects what one scope binds.
class Binder {
 public:
  void Visit(NodeRef node, bool in_comprehension = false) {
    if (const python::Stmt* statement = node.stmt()) {
      if (const auto* function = FunctionOf(statement)) {
        names_.insert(function->name);
        return;
      }
      if (const auto* cls = IsA<python::ClassDef>(statement)) {
        names_.insert(cls->name);
        return;
      }
      if (const auto* global = IsA<python::Global>(statement)) {
        outer_.insert(global->names.begin(), global->names.end());
      }
    } else if (const python::Expr* expr = node.expr()) {
      if (expr->kind == ExprKind::kLambda) return;
      if (const auto* named = IsA<python::NamedExpr>(expr)) {
        if (const auto* target = IsA<python::Name>(std::as_const(named->target))) {
          names_.insert(target->id);
        }
      }
      in_comprehension |= IsComprehension(*expr);
      const auto* name = IsA<python::Name>(expr);
      if (name != nullptr && name->ctx != python::ExprContext::kLoad && !in_comprehension) {
        names_.insert(name->id);
      }
    } else if (const python::ExceptHandler* handler = node.except_handler()) {
      if (handler->name.data() != nullptr) names_.insert(handler->name);
    } else if (const python::Pattern* pattern = node.pattern()) {
      VisitPattern(*pattern);
    }
    ForEachChild(node, [&](NodeRef child) { Visit(child, in_comprehension); });
  }

  NameSet Take() {
    for (const std::string_view name : outer_) names_.erase(name);
    return std::move(names_);
  }

 private:
  void VisitPattern(const python::Pattern& pattern) {
    std::string_view name;
    if (const auto* as = IsA<python::MatchAs>(&pattern)) name = as->name;
    if (const auto* star = IsA<python::MatchStar>(&pattern)) name = star->name;
    if (const auto* mapping = IsA<python::MatchMapping>(&pattern)) name = mapping->rest;
    if (name.data() != nullptr) names_.insert(name);
  }

  NameSet names_, outer_;
};

class FreeNameFinder {
 public:
  explicit FreeNameFinder(const NameSet& bound) { scopes_.push_back(bound); }

  void Visit(NodeRef node) {
    if (const python::Stmt* statement = node.stmt()) {
      if (const auto* function = FunctionOf(statement)) return VisitFunction(*function);
    } else if (const python::Expr* expr = node.expr()) {
      if (const auto* name = IsA<python::Name>(expr)) return VisitName(*name);
      if (const auto* lambda = IsA<python::Lambda>(expr)) return VisitLambda(*lambda);
      if (IsComprehension(*expr)) return VisitComprehension(*expr);
    }
    ForEachChild(node, [this](NodeRef child) { Visit(child); });
  }

  std::vector<const python::Name*> Take() { return std::move(found_); }

 private:
  void VisitName(const python::Name& name) {
    for (const NameSet& scope : scopes_) {
      if (scope.contains(name.id)) return;
    }
    found_.push_back(&name);
  }

  void VisitDefaults(const python::Arguments& arguments) {
    for (const python::Expr* value : arguments.defaults) Visit(value);
    for (const python::Expr* value : arguments.kw_defaults) {
      if (value != nullptr) Visit(value);
    }
  }

  void VisitFunction(const python::FunctionDef& function) {
    for (const python::Expr* decorator : function.decorator_list) Visit(decorator);
    VisitDefaults(*function.args);
    NameSet scope = Bindings(function.body);
    scope.merge(Parameters(*function.args));
    scopes_.push_back(std::move(scope));
    for (const python::Stmt* statement : function.body) Visit(statement);
    scopes_.pop_back();
  }

  void VisitLambda(const python::Lambda& lambda) {
    VisitDefaults(*lambda.args);
    scopes_.push_back(Parameters(*lambda.args));
    Visit(std::as_const(lambda.body));
    scopes_.pop_back();
  }

  void VisitComprehension(const python::Expr& expr) {
    Binder binder;
    for (const python::Comprehension* generator : Generators(expr)) {
      binder.Visit(std::as_const(generator->target));
    }
    // The first iterable is evaluated outside.
    const python::Expr* first = Generators(expr).front()->iter;
    Visit(first);
    scopes_.push_back(binder.Take());
    ForEachChild(&expr, [this, first](NodeRef child) {
      if (child.comprehension() == nullptr) return Visit(child);
      ForEachChild(child, [this, first](NodeRef part) {
        if (part.expr() != first) Visit(part);
      });
    });
    scopes_.pop_back();
  }

  std::vector<NameSet> scopes_;
  std::vector<const python::Name*> found_;
};

}  // namespace

NameSet Parameters(const python::Arguments& arguments) {
  NameSet names;
  for (const auto list : {arguments.posonlyargs, arguments.args, arguments.kwonlyargs}) {
    for (const python::Arg* arg : list) names.insert(arg->arg);
  }
  for (const python::Arg* arg : {arguments.vararg, arguments.kwarg}) {
    if (arg != nullptr) names.insert(arg->arg);
  }
  return names;
}

NameSet Bindings(python::List<python::Stmt*> body) {
  Binder binder;
  for (const python::Stmt* statement : body) binder.Visit(statement);
  return binder.Take();
}

std::vector<const python::Name*> FreeNames(NodeRef root, const NameSet& bound) {
  FreeNameFinder finder(bound);
  finder.Visit(root);
  return finder.Take();
}

const python::FunctionDef* FunctionOf(const python::Stmt* statement) {
  if (statement == nullptr) return nullptr;
  if (statement->kind != python::StmtKind::kFunctionDef &&
      statement->kind != python::StmtKind::kAsyncFunctionDef) {
    return nullptr;
  }
  return As<python::FunctionDef>(statement);
}

const python::Name* RootName(const python::Expr* expr) {
  while (true) {
    if (const auto* name = IsA<python::Name>(expr)) return name;
    if (const auto* attribute = IsA<python::Attribute>(expr)) {
      expr = attribute->value;
    } else if (const auto* call = IsA<python::Call>(expr)) {
      expr = call->func;
    } else if (const auto* subscript = IsA<python::Subscript>(expr)) {
      expr = subscript->value;
    } else if (const auto* await = IsA<python::Await>(expr)) {
      expr = await->value;
    } else {
      return nullptr;
    }
  }
}

std::string DottedName(const python::Expr* expr) {
  if (const auto* name = IsA<python::Name>(expr)) return std::string(name->id);
  const auto* attribute = IsA<python::Attribute>(expr);
  if (attribute == nullptr) return {};
  std::string base = DottedName(attribute->value);
  return base.empty() ? base : base.append(1, '.').append(attribute->attr);
}

}  // namespace caisson::workflow::migrate
