// SPDX-License-Identifier: Apache-2.0
#include "workflow/body_check.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "errors/body.h"
#include "python/walk.h"
#include "workflow/builtin_table.h"
#include "workflow/capability.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

using python::ExprContext;
using python::ExprKind;
using python::NodeRef;
using python::StmtKind;

struct Finding {
  ErrorCode code;
  std::string text;  // after the prefix
  std::string hint;
};

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::optional<Finding> CheckExpr(const python::Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kName: {
      const std::string_view id = python::As<python::Name>(&expr)->id;
      if (!id.starts_with("__")) return std::nullopt;
      return Finding{errors::kBodyDunder,
                     "body may not reference dunder name " + Quoted(id) +
                         "; this closes builtin-allowlist escapes such as __builtins__ and "
                         "__import__",
                     "use a name that does not start with two underscores"};
    }
    case ExprKind::kAttribute: {
      const std::string_view attr = python::As<python::Attribute>(&expr)->attr;
      if (!attr.starts_with("__")) return std::nullopt;
      return Finding{errors::kBodyDunder,
                     "body may not access dunder attribute " + Quoted(attr) +
                         "; this closes introspection gadget chains (e.g. "
                         "__class__/__subclasses__/__globals__)",
                     "use the public operation instead, such as type(x), len(x) or str(x)"};
    }
    case ExprKind::kAwait:
      return Finding{errors::kBodyAsyncNotAllowed,
                     "body may not use 'await'; it must be a pure synchronous transform",
                     "put what has to be awaited into a built-in node before this one"};
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return Finding{errors::kBodyGenerator, "body may not be a generator",
                     "collect the values in a list and return it"};
    default:
      return std::nullopt;
  }
}

std::optional<Finding> CheckStmt(const python::Stmt& stmt, const python::FunctionDef& run) {
  switch (stmt.kind) {
    case StmtKind::kImport:
    case StmtKind::kImportFrom:
      return Finding{errors::kBodyImportNotAllowed, "body may not import modules",
                     "remove it; a body has state, config, self and the allowed builtins"};
    case StmtKind::kAsyncFor:
    case StmtKind::kAsyncWith:
      return Finding{errors::kBodyAsyncNotAllowed, "body may not use async constructs",
                     "write it without 'async'"};
    case StmtKind::kAsyncFunctionDef:
      if (&stmt == &run) return std::nullopt;
      return Finding{errors::kBodyAsyncNotAllowed, "body may not define async functions",
                     "write it without 'async'"};
    default:
      return std::nullopt;
  }
}

// The name of an undeclared field that `expr` reads or writes as `self.<x>`.
const python::Attribute* SelfField(NodeRef node) {
  const auto* attribute = python::IsA<python::Attribute>(node.expr());
  if (attribute == nullptr) return nullptr;
  const auto* object =
      python::IsA<python::Name>(static_cast<const python::Expr*>(attribute->value));
  return object != nullptr && object->id == "self" ? attribute : nullptr;
}

// True when `run` itself, not a function or lambda inside it, returns a value.
bool ReturnsValue(const python::FunctionDef& run) {
  std::vector<NodeRef> pending;
  const auto push = [&pending](NodeRef child) {
    const python::Stmt* stmt = child.stmt();
    const bool is_function = stmt != nullptr && (stmt->kind == StmtKind::kFunctionDef ||
                                                 stmt->kind == StmtKind::kAsyncFunctionDef);
    const bool is_lambda = child.expr() != nullptr && child.expr()->kind == ExprKind::kLambda;
    if (!is_function && !is_lambda) pending.push_back(child);
  };
  python::ForEachChild(&run, push);
  while (!pending.empty()) {
    const NodeRef node = pending.back();
    pending.pop_back();
    const auto* result = python::IsA<python::Return>(node.stmt());
    if (result != nullptr && result->value != nullptr) return true;
    if (node.expr() == nullptr) python::ForEachChild(node, push);
  }
  return false;
}

class BodyChecker {
 public:
  BodyChecker(const python::FunctionDef& run, std::string_view node_id,
              const std::vector<std::string>& injected)
      : run_(run), prefix_("CodeNode '" + std::string(node_id) + "' "), injected_(injected) {
    python::WalkBreadthFirst(&run, [this](NodeRef node) { nodes_.push_back(node); });
  }

  // The peer's phases in its order; within one, breadth first.
  std::vector<Diagnostic> Errors() {
    CheckStructure();
    CheckSelf();
    if (!ReturnsValue(run_)) {
      Report(DefKeyword(), {errors::kBodyNoReturn, "body must return a node result payload",
                            "end with 'return {...}'; what is returned becomes the node's result"});
    }
    CheckBuiltins();
    return std::move(errors_);
  }

  const std::vector<NodeRef>& nodes() const { return nodes_; }

 private:
  void Report(SourceSpan span, Finding finding) {
    errors_.push_back({.code = finding.code,
                       .span = span,
                       .message = prefix_ + std::move(finding.text),
                       .hint = std::move(finding.hint),
                       .peer_line = span.line});
  }

  SourceSpan DefKeyword() const {
    if (!run_.span.known()) return {};  // no signature of the author (body.cc)
    const std::uint32_t width = run_.kind == StmtKind::kAsyncFunctionDef ? 9 : 3;  // "async def"
    return {run_.span.line, run_.span.column, run_.span.line, run_.span.column + width};
  }

  void CheckStructure() {
    for (const NodeRef node : nodes_) {
      std::optional<Finding> finding;
      if (node.expr() != nullptr) finding = CheckExpr(*node.expr());
      if (node.stmt() != nullptr) finding = CheckStmt(*node.stmt(), run_);
      if (finding) Report(node.span(), *std::move(finding));
    }
  }

  void CheckSelf() {
    for (const NodeRef node : nodes_) {
      const python::Attribute* field = SelfField(node);
      if (field == nullptr || std::ranges::binary_search(injected_, field->attr)) continue;
      Report(field->span, {errors::kBodyUndeclaredField,
                           "body references undeclared field 'self." + std::string(field->attr) +
                               "'; injected fields: " + InjectedList(),
                           FieldHint(field->attr)});
    }
  }

  std::string InjectedList() const {
    std::string text;
    for (const std::string& name : injected_) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "(none)" : text;
  }

  std::string FieldHint(std::string_view attr) const {
    const std::vector<std::string_view> names(injected_.begin(), injected_.end());
    const std::string_view nearest = Nearest(attr, names);
    if (!nearest.empty()) return "did you mean 'self." + std::string(nearest) + "'?";
    return "declare it in the class: " + std::string(attr) + ": Any = None";
  }

  void CheckBuiltins() {
    for (const NodeRef node : nodes_) {
      const auto* name = python::IsA<python::Name>(node.expr());
      if (name == nullptr || name->ctx != ExprContext::kLoad) continue;
      if (!std::ranges::binary_search(internal::kRejected, name->id)) continue;
      Report(name->span, {errors::kBodyBuiltinNotAllowed,
                          "body uses builtin " + Quoted(name->id) +
                              ", which is not supported by the sandbox (artifact " +
                              std::string(kAllowlistVersion) + ")",
                          BuiltinHint(name->id)});
    }
  }

  static std::string BuiltinHint(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> kHints[] = {
        {"format", "use an f-string or '...'.format(...)"},
        {"getattr", "use the attribute or a dict"},
        {"input", "if it is a variable of yours, give it another name; else read state"},
        {"print", "return what you want to see; a DebugNode shows it"},
        {"setattr", "use an assignment or a dict"},
        {"vars", "use a dict"},
    };
    const auto* found =
        std::ranges::find(kHints, name, &std::pair<std::string_view, std::string_view>::first);
    if (found != std::end(kHints)) return std::string(found->second);
    if (name.ends_with("Error") || name.ends_with("Warning")) {
      return "use one of the allowed exceptions, such as ValueError or RuntimeError";
    }
    return "if it is a variable of yours, give it another name";
  }

  const python::FunctionDef& run_;
  std::string prefix_;
  const std::vector<std::string>& injected_;
  std::vector<NodeRef> nodes_;
  std::vector<Diagnostic> errors_;
};

// Errors before warnings, each in source order; with `keep_first`, the first one stays first.
std::vector<std::size_t> Order(const std::vector<Diagnostic>& found, bool keep_first) {
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const Diagnostic& each = found[i];
    return std::tuple(each.severity, !(keep_first && i == 0), each.span.line, each.span.column, i);
  });
  return order;
}

// A body is called as run(self, state, config) whatever its author called the parameters.
void WarnOfParameters(const python::FunctionDef& run, std::string_view node_id,
                      std::vector<Diagnostic>& out) {
  static constexpr std::string_view kNames[] = {"self", "state", "config"};
  const auto warn = [&](const python::Arg& arg) {
    if (std::ranges::find(kNames, arg.arg) != std::end(kNames)) return;
    out.push_back({.code = errors::kBodyStructure,
                   .severity = Severity::kWarning,
                   .span = arg.span,
                   .message = "CodeNode '" + std::string(node_id) + "' parameter '" +
                              std::string(arg.arg) +
                              "' has no value: a body is called with self, state and config",
                   .hint = "declare def run(self, state, config)"});
  };
  const auto warn_all = [&](python::List<python::Arg*> args) {
    for (const python::Arg* arg : args) warn(*arg);
  };
  warn_all(run.args->posonlyargs);
  warn_all(run.args->args);
  warn_all(run.args->kwonlyargs);
  if (run.args->vararg != nullptr) warn(*run.args->vararg);
  if (run.args->kwarg != nullptr) warn(*run.args->kwarg);
}

}  // namespace

std::span<const std::string_view> AllowedBuiltins() { return internal::kAllowed; }
std::span<const std::string_view> RejectedBuiltins() { return internal::kRejected; }

void CheckBody(const python::FunctionDef& run, std::string_view node_id,
               const std::vector<std::string>& injected, const CompileOptions& options,
               std::vector<Diagnostic>& out) {
  BodyChecker checker(run, node_id, injected);
  std::vector<Diagnostic> found = checker.Errors();
  const bool peer_refuses = !found.empty();
  if (options.runtimes.Of(node_id) == CodeRuntime::kMicroPython) {
    CheckCapabilities(run, checker.nodes(), node_id, found);
  }
  WarnOfParameters(run, node_id, found);
  for (const std::size_t i : Order(found, peer_refuses)) out.push_back(std::move(found[i]));
}

}  // namespace caisson::workflow
