// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "workflow/literal.h"

namespace caisson::workflow::migrate {
namespace {

using python::As;
using python::ConstantKind;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

bool IsTemplateLike(std::string_view text) {
  return text.find("{{") != std::string_view::npos || text.find("[[") != std::string_view::npos;
}

bool IsNumber(const python::Expr& expr) {
  const auto* constant = IsA<python::Constant>(&expr);
  return constant != nullptr &&
         (constant->constant == ConstantKind::kInt || constant->constant == ConstantKind::kBigInt ||
          constant->constant == ConstantKind::kFloat);
}

// A literal that the config of a code node keeps as it is.
bool IsFieldLiteral(const python::Expr& expr) {
  if (const auto* constant = IsA<python::Constant>(&expr)) {
    if (constant->constant == ConstantKind::kStr) {
      return !IsTemplateLike(constant->text) && !HasLoneSurrogate(constant->text);
    }
    if (constant->constant == ConstantKind::kFloat) return constant->number - constant->number == 0;
    return IsNumber(expr) || constant->constant == ConstantKind::kNone ||
           constant->constant == ConstantKind::kTrue || constant->constant == ConstantKind::kFalse;
  }
  if (const auto* unary = IsA<python::UnaryOp>(&expr)) {
    return unary->op == python::UnaryOperator::kUSub && IsNumber(*unary->operand);
  }
  if (const auto* list = IsA<python::ListExpr>(&expr)) {
    return std::ranges::all_of(list->elts,
                               [](const python::Expr* each) { return IsFieldLiteral(*each); });
  }
  const auto* dict = IsA<python::Dict>(&expr);
  if (dict == nullptr) return false;
  for (std::size_t i = 0; i < dict->keys.size(); ++i) {
    const auto* key = IsA<python::Constant>(std::as_const(dict->keys[i]));
    if (key == nullptr || key->constant != ConstantKind::kStr || !IsFieldLiteral(*key))
      return false;
    if (!IsFieldLiteral(*dict->values[i])) return false;
  }
  return true;
}

// Made of literals and operators only, so that evaluating it again gives the same.
bool IsPure(const python::Expr& expr) {
  bool pure = true;
  python::WalkBreadthFirst(&expr, [&pure](NodeRef node) {
    if (node.expr() == nullptr) return;
    switch (node.expr()->kind) {
      case ExprKind::kConstant:
      case ExprKind::kUnaryOp:
      case ExprKind::kBinOp:
      case ExprKind::kBoolOp:
      case ExprKind::kCompare:
      case ExprKind::kList:
      case ExprKind::kTuple:
      case ExprKind::kSet:
      case ExprKind::kDict:
        return;
      default:
        pure = false;
    }
  });
  return pure;
}

void AddImports(const python::Stmt& statement, Facts& facts) {
  if (const auto* import = IsA<python::Import>(&statement)) {
    for (const python::Alias* alias : import->names) {
      const bool renamed = alias->asname.data() != nullptr;
      const std::string_view top = alias->name.substr(0, alias->name.find('.'));
      facts.imports[renamed ? alias->asname : top] = {
          std::string(renamed ? alias->name : top), {}, statement.span};
    }
  } else if (const auto* from = IsA<python::ImportFrom>(&statement)) {
    for (const python::Alias* alias : from->names) {
      const bool renamed = alias->asname.data() != nullptr;
      facts.imports[renamed ? alias->asname : alias->name] = {
          std::string(from->level, '.') + std::string(from->module), std::string(alias->name),
          statement.span};
    }
  }
}

void AddConstant(std::string_view name, const python::Stmt& statement, const python::Expr* value,
                 Facts& facts) {
  Constant& constant = facts.constants[name];
  constant.changed = constant.statement != nullptr;
  constant.statement = &statement;
  constant.value = value;
  constant.kind = IsFieldLiteral(*value) ? Constant::Kind::kField
                  : IsPure(*value)       ? Constant::Kind::kLocal
                                         : Constant::Kind::kForeign;
}

void AddStatement(const python::Stmt& statement, Facts& facts) {
  AddImports(statement, facts);
  if (const auto* function = FunctionOf(&statement)) {
    facts.functions[function->name] = function;
  } else if (const auto* cls = IsA<python::ClassDef>(&statement)) {
    facts.classes[cls->name] = cls;
  } else if (const auto* assign = IsA<python::Assign>(&statement)) {
    for (const python::Expr* target : assign->targets) {
      const auto* name = IsA<python::Name>(target);
      if (name != nullptr) AddConstant(name->id, statement, assign->value, facts);
    }
  } else if (const auto* annotated = IsA<python::AnnAssign>(&statement)) {
    const auto* name = IsA<python::Name>(std::as_const(annotated->target));
    if (name != nullptr && annotated->value != nullptr) {
      AddConstant(name->id, statement, annotated->value, facts);
    }
  }
}

constexpr std::array<std::string_view, 14> kChanging = {
    "add",     "append", "clear",   "discard",    "extend", "insert", "pop",
    "popitem", "remove", "reverse", "setdefault", "sort",   "update", "__setitem__"};

void FindChanges(const python::Module& module, Facts& facts) {
  for (const python::Stmt* statement : module.body) {
    if (IsMainGuard(*statement)) continue;
    const bool defines =
        FunctionOf(statement) != nullptr || statement->kind == python::StmtKind::kClassDef;
    for (const python::Name* name : FreeNames(statement)) {
      const auto found = facts.constants.find(name->id);
      if (found == facts.constants.end()) continue;
      if (!defines && name->ctx == python::ExprContext::kStore) continue;  // its definition
      if (name->ctx != python::ExprContext::kLoad || IsChanged(name, facts))
        found->second.changed = true;
    }
  }
}

void CollectWords(const python::Module& module, Facts& facts) {
  python::WalkBreadthFirst(&module, [&facts](NodeRef node) {
    python::ForEachChild(node, [&](NodeRef child) {
      if (child.expr() != nullptr) facts.parents.emplace(child.expr(), node);
    });
    if (node.expr() != nullptr) {
      python::ForEachChild(node, [&](NodeRef child) {
        if (child.comprehension() != nullptr) {
          facts.comprehensions.emplace(child.comprehension(), node.expr());
        }
      });
    }
    if (node.arg() != nullptr) facts.names.insert(node.arg()->arg);
    if (node.stmt() != nullptr) {
      if (const auto* function = FunctionOf(node.stmt())) facts.names.insert(function->name);
      if (const auto* cls = IsA<python::ClassDef>(node.stmt())) facts.names.insert(cls->name);
    }
    if (node.expr() == nullptr) return;
    if (const auto* name = IsA<python::Name>(node.expr())) facts.names.insert(name->id);
    const auto* constant = IsA<python::Constant>(node.expr());
    if (constant != nullptr && constant->constant == ConstantKind::kStr) {
      facts.strings.insert(constant->text);
    }
  });
}

// Annotated[list[str], operator.add] and the like.
Field::Reducer ReducerOf(const python::Expr& annotation, const Facts& facts) {
  const auto* subscript = IsA<python::Subscript>(&annotation);
  if (subscript == nullptr) return Field::Reducer::kLast;
  const std::string base = DottedName(subscript->value);
  if (base != "Annotated" && !base.ends_with(".Annotated")) return Field::Reducer::kLast;
  const auto* parts = IsA<python::Tuple>(std::as_const(subscript->slice));
  if (parts == nullptr || parts->elts.size() != 2) return Field::Reducer::kOther;
  const std::string reducer = facts.ImportedAs(parts->elts[1]);
  if (reducer != "operator.add" && reducer != "operator.concat") return Field::Reducer::kOther;
  const auto* generic = IsA<python::Subscript>(std::as_const(parts->elts[0]));
  const std::string type = DottedName(generic != nullptr ? generic->value : parts->elts[0]);
  if (type == "list" || type == "List" || type == "typing.List") return Field::Reducer::kAddList;
  if (type == "int" || type == "float") return Field::Reducer::kAddNumber;
  return type == "str" ? Field::Reducer::kAddText : Field::Reducer::kOther;
}

}  // namespace

const python::Expr* Facts::ParentExpr(const python::Expr* expr) const {
  const auto found = parents.find(expr);
  return found == parents.end() ? nullptr : found->second.expr();
}

std::string Facts::ImportedAs(const python::Expr* expr) const {
  const std::string dotted = DottedName(expr);
  const std::size_t dot = std::min(dotted.find('.'), dotted.size());
  const auto found = imports.find(std::string_view(dotted).substr(0, dot));
  if (dotted.empty() || found == imports.end()) return {};
  return found->second.Dotted() + dotted.substr(dot);
}

bool Facts::IsLangGraph(const python::Expr* expr, std::string_view name) const {
  const std::string meaning = ImportedAs(expr);
  if (!meaning.starts_with("langgraph.") && !meaning.starts_with("orcheo.")) return false;
  return meaning.ends_with("." + std::string(name));
}

bool IsChanged(const python::Expr* expr, const Facts& facts) {
  const python::Expr* at = expr;
  const python::Expr* parent = facts.ParentExpr(at);
  while (const auto* subscript = IsA<python::Subscript>(parent)) {
    if (subscript->value != at) return false;
    if (subscript->ctx != python::ExprContext::kLoad) return true;
    at = subscript;
    parent = facts.ParentExpr(at);
  }
  const auto* attribute = IsA<python::Attribute>(parent);
  if (attribute == nullptr || attribute->value != at) return false;
  if (attribute->ctx != python::ExprContext::kLoad) return true;
  return std::ranges::find(kChanging, attribute->attr) != kChanging.end();
}

Facts ReadFacts(const python::Module& module) {
  Facts facts;
  CollectWords(module, facts);
  for (const python::Stmt* statement : module.body) {
    if (!IsMainGuard(*statement)) AddStatement(*statement, facts);
  }
  // Imports inside of functions.
  for (const auto& [name, function] : facts.functions) {
    python::WalkBreadthFirst(function, [&facts](NodeRef node) {
      if (node.stmt() != nullptr) AddImports(*node.stmt(), facts);
    });
  }
  FindChanges(module, facts);
  return facts;
}

bool IsBaseField(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kFields = {
      "assistant_message",   "config",      "inputs", "messages", "node_results",
      "structured_response", "workspace_id"};
  return std::ranges::find(kFields, name) != kFields.end();
}

std::vector<Field> FieldsOf(const python::ClassDef& cls, const Facts& facts) {
  std::vector<Field> fields;
  for (const python::Expr* base : cls.bases) {
    const auto found = facts.classes.find(DottedName(base));
    if (found == facts.classes.end() || found->second == &cls) continue;
    if (found->second->span.line >= cls.span.line) continue;
    fields = FieldsOf(*found->second, facts);
  }
  for (const python::Stmt* member : cls.body) {
    const auto* annotated = IsA<python::AnnAssign>(member);
    if (annotated == nullptr) continue;
    const auto* name = IsA<python::Name>(std::as_const(annotated->target));
    if (name == nullptr) continue;
    std::erase_if(fields, [&](const Field& field) { return field.name == name->id; });
    fields.push_back({name->id, ReducerOf(*annotated->annotation, facts), member->span});
  }
  return fields;
}

bool IsStateLike(const python::ClassDef& cls, const Facts& facts) {
  return std::ranges::any_of(cls.bases, [&](const python::Expr* base) {
    const std::string meaning = facts.ImportedAs(base);
    for (const std::string_view known : {"TypedDict", "State", "MessagesState"}) {
      if (meaning.ends_with("." + std::string(known))) return true;
    }
    const auto found = facts.classes.find(DottedName(base));
    return found != facts.classes.end() && found->second->span.line < cls.span.line &&
           IsStateLike(*found->second, facts);
  });
}

bool IsMainGuard(const python::Stmt& statement) {
  const auto* guard = IsA<python::If>(&statement);
  if (guard == nullptr || !guard->orelse.empty()) return false;
  const auto* test = IsA<python::Compare>(std::as_const(guard->test));
  if (test == nullptr || test->ops.size() != 1 || test->ops[0] != python::CompareOperator::kEq)
    return false;
  const auto* name = IsA<python::Name>(std::as_const(test->left));
  return name != nullptr && name->id == "__name__" &&
         StringLiteral(*test->comparators[0]) == "__main__";
}

}  // namespace caisson::workflow::migrate
