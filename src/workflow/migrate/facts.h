// SPDX-License-Identifier: Apache-2.0
// What the statements of an unrestricted workflow file are: imports, constants, functions, classes,
// the state class and its fields. Reads the tree, decides nothing, owns nothing of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "python/ast.h"
#include "python/walk.h"
#include "workflow/migrate/names.h"

namespace caisson::workflow::migrate {

struct Import {
  std::string module;
  std::string name;  // empty: the module itself is bound
  SourceSpan span;
  bool FromOrcheo() const { return module == "orcheo" || module.starts_with("orcheo."); }
  // What the local name stands for: "math", "operator.add".
  std::string Dotted() const { return name.empty() ? module : module + "." + name; }
};

struct Constant {
  enum class Kind : std::uint8_t {
    kField,   // a JSON literal: can be a field of a CodeNode
    kLocal,   // another value that is made of literals: can be made anew in each run
    kForeign  // anything else: a call, an object that keeps state
  };
  Kind kind = Kind::kForeign;
  const python::Stmt* statement = nullptr;
  const python::Expr* value = nullptr;
  bool changed = false;  // assigned again, or changed in place somewhere
};

struct Field {
  enum class Reducer : std::uint8_t { kLast, kAddList, kAddNumber, kAddText, kOther };
  std::string_view name;
  Reducer reducer = Reducer::kLast;
  SourceSpan span;
};

struct Facts {
  std::map<std::string_view, Import> imports;
  std::map<std::string_view, Constant> constants;
  std::map<std::string_view, const python::FunctionDef*> functions;
  std::map<std::string_view, const python::ClassDef*> classes;
  std::unordered_map<const python::Expr*, python::NodeRef> parents;
  std::unordered_map<const python::Comprehension*, const python::Expr*> comprehensions;
  NameSet strings;  // all texts, for names that must not be taken
  NameSet names;    // all identifiers

  const python::Expr* ParentExpr(const python::Expr* expr) const;
  // The dotted meaning of an expression that begins with an import: math.floor -> "math.floor";
  // empty when it does not.
  std::string ImportedAs(const python::Expr* expr) const;
  // Whether `expr` is `name` of langgraph, however it was imported.
  bool IsLangGraph(const python::Expr* expr, std::string_view name) const;
};

Facts ReadFacts(const python::Module& module);

// Whether what `expr` gives is changed where it stands: X[k] = v, del X[k], X.append(v).
bool IsChanged(const python::Expr* expr, const Facts& facts);

// The fields that Orcheo's own state has.
bool IsBaseField(std::string_view name);
// Fields of a class made of annotated names (TypedDict, State), and whether it has only such.
std::vector<Field> FieldsOf(const python::ClassDef& cls, const Facts& facts);
// TypedDict, State, MessagesState or a class of the file that is one of them.
bool IsStateLike(const python::ClassDef& cls, const Facts& facts);
bool IsMainGuard(const python::Stmt& statement);

}  // namespace caisson::workflow::migrate
