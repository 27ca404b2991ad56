// SPDX-License-Identifier: Apache-2.0
// Which names of a function mean something outside of it. Knows Python's scopes (functions,
// lambdas, comprehensions, classes) as far as an AST shows them; imports inside of functions count
// as names from outside, since they are looked up like those. Stateless.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "python/ast.h"
#include "python/walk.h"

namespace caisson::workflow::migrate {

using NameSet = std::set<std::string_view>;

// A function's parameters.
NameSet Parameters(const python::Arguments& arguments);
// What `body` binds, without what nested functions, lambdas and comprehensions do.
NameSet Bindings(python::List<python::Stmt*> body);

// All uses (loads, stores, deletions) under `root` of names that neither `bound` nor a scope in
// between binds, in the order of the source.
std::vector<const python::Name*> FreeNames(python::NodeRef root, const NameSet& bound = {});

// The function behind a def or async def, else null.
const python::FunctionDef* FunctionOf(const python::Stmt* statement);
// The name that stands at the beginning of a.b(c)[d].e; null when there is none.
const python::Name* RootName(const python::Expr* expr);
// "a.b.c" of such an expression of names and attributes only; else empty.
std::string DottedName(const python::Expr* expr);

}  // namespace caisson::workflow::migrate
