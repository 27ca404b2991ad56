// SPDX-License-Identifier: Apache-2.0
// How the graphs of a file are put together: the builder's statements, loops unrolled, names of
// functions resolved, and the graphs that this gives. What has no counterpart in the restricted
// grammar becomes a decision. Reads only; builder.h writes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workflow/migrate/facts.h"
#include "workflow/migrate/findings.h"

namespace caisson::workflow::migrate {

// Loop variables by what they stand for in one turn.
using Turn = std::map<std::string_view, const python::Expr*>;

// One statement of a builder, in one turn of the loops around it.
struct Step {
  enum class Kind : std::uint8_t { kProse, kNewGraph, kNodeVariable, kCall, kAlias };
  Kind kind;
  const python::Stmt* statement;
  const python::Stmt* outermost;  // the loop that it was in, or itself
  std::string graph;              // kNewGraph, kCall, kAlias
  const python::Call* call = nullptr;
  std::string_view method;
  Turn turn;
};

struct Node {
  std::string id;
  const python::FunctionDef* function = nullptr;
  const python::Lambda* lambda = nullptr;
  std::string subgraph;
};

struct Branch {
  std::string source;  // "__start__" too
  const python::Call* call = nullptr;
  const python::Expr* router = nullptr;  // null when it is no function
  const python::FunctionDef* function = nullptr;
  const python::Lambda* lambda = nullptr;
  // What the router may give, as the text of a value, and where that leads; filled by the mapping,
  // the router's annotation or what it returns.
  std::vector<std::pair<std::string, std::string>> mapping;
};

struct GraphModel {
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, std::string>> edges;
  std::vector<Branch> branches;

  const Node* Find(std::string_view id) const;
  std::vector<std::string> After(std::string_view id) const;
  std::set<std::string> Reached(std::string_view from, std::string_view without = {}) const;
  // Whether nodes may run beside each other when `id` has run.
  bool MayRunBeside(std::string_view id) const;
  // Whether the nodes always end in the same step, so that plain edges join them.
  bool EndTogether(const std::vector<std::string>& ids) const;
};

struct Wiring {
  const python::FunctionDef* builder = nullptr;  // null: it stands at module level
  std::set<const python::Stmt*> statements;      // of the module that belong to the builder
  std::vector<Step> steps;
  std::map<std::string, GraphModel, std::less<>> graphs;
  std::map<std::string, std::string, std::less<>> compiled;  // app = graph.compile()
  std::string main;                                          // the graph that is run
  std::set<const python::FunctionDef*> other_builders;
};

inline constexpr std::string_view kStart = "__start__", kEnd = "__end__";
// The most statements that unrolling may give.
inline constexpr std::size_t kMaxSteps = 5000;

Wiring ReadWiring(const python::Module& module, const Facts& facts, Findings& out);

// The text that `expr` stands for: a literal, a loop variable, f.__name__, START, END.
std::optional<std::string> TextOf(const python::Expr* expr, const Turn& turn, const Facts& facts);
// What a name of a loop stands for, else `expr`.
const python::Expr* Resolve(const python::Expr* expr, const Turn& turn);
// True for a call of a node class of Orcheo's or of the file's own CodeNodes.
bool IsNodeCall(const python::Expr* expr, const Facts& facts);

}  // namespace caisson::workflow::migrate
