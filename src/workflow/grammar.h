// SPDX-License-Identifier: Apache-2.0
// The grammar pass: which forms a workflow file may consist of. Looks at shapes only: it collects
// nothing, resolves no names and interprets no builder. Bodies of `run` are opaque to it.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "python/ast.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

inline constexpr std::string_view kEntrypointName = "orcheo_workflow";

struct Grammar {
  // Classes, class members, functions and builder statements that broke a rule: later phases make
  // no sense of them and report nothing that only follows from their absence.
  std::unordered_set<const python::Stmt*> refused;
  bool builder_statement_refused = false;
  std::size_t entrypoints = 0;

  bool Refused(const python::Stmt* statement) const { return refused.contains(statement); }
};

// Appends what breaks the grammar, in the order in which the peer checks.
Grammar CheckGrammar(const python::Module& module, std::vector<Diagnostic>& out);

bool IsDocstring(const python::Stmt& statement);
const python::FunctionDef* AsFunction(const python::Stmt* statement);  // async or not, else null

// The first words of a statement ("class C", "for"): what a caret under a block should point at.
// The whole statement when it has one line.
SourceSpan HeadSpan(const python::Stmt& statement);

// The bare name that `expr` is, or nothing.
std::string_view BareName(const python::Expr* expr);

// `name.method` of an attribute call's callee: the parts, or null where it has another form.
const python::Attribute* MethodOfName(const python::Expr* callee);

}  // namespace caisson::workflow
