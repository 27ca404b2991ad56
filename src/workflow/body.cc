// SPDX-License-Identifier: Apache-2.0
#include "workflow/body.h"

#include <array>
#include <utility>

#include "errors/body.h"
#include "python/printer.h"
#include "workflow/body_check.h"
#include "workflow/body_parse.h"

namespace caisson::workflow {
namespace {

// `def run(self, state, config):` around statements that stand in a tree; the nodes of the
// signature live here.
class RunFunction {
 public:
  explicit RunFunction(python::List<python::Stmt*> statements) {
    static constexpr std::string_view kNames[] = {"self", "state", "config"};
    for (std::size_t i = 0; i < args_.size(); ++i) {
      args_[i].arg = kNames[i];
      arg_pointers_[i] = &args_[i];
    }
    arguments_.args = arg_pointers_;
    function_.kind = python::StmtKind::kFunctionDef;
    function_.name = "run";
    function_.args = &arguments_;
    function_.body = statements;
  }
  RunFunction(const RunFunction&) = delete;
  RunFunction& operator=(const RunFunction&) = delete;

  const python::FunctionDef& function() const { return function_; }
  python::PrintedSource Print() const {
    return python::Print(python::List<python::Stmt*>(&function_pointer_, 1));
  }

 private:
  std::array<python::Arg, 3> args_{};
  std::array<python::Arg*, 3> arg_pointers_{};
  python::Arguments arguments_{};
  python::FunctionDef function_{};
  python::Stmt* function_pointer_ = &function_;
};

Diagnostic FromSyntaxError(const python::SyntaxError& error, const std::string& node_id) {
  const bool bounded = error.type == python::SyntaxError::Type::kTooDeep ||
                       error.type == python::SyntaxError::Type::kTooLarge;
  return {.code = bounded ? errors::kBodyTooDeep : errors::kBodySyntax,
          .span = error.span,
          .message = "CodeNode '" + node_id + "' body is not valid Python: " + error.message,
          .hint = "compile the workflow again from its source"};
}

void ShiftLines(SourceSpan& span, std::uint32_t by) {
  if (span.line > by) span.line -= by;
  if (span.end_line > by) span.end_line -= by;
}

bool HasErrors(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& each : diagnostics) {
    if (each.severity == Severity::kError) return true;
  }
  return false;
}

}  // namespace

std::expected<RunnableBody, std::vector<Diagnostic>> PrepareBody(const CodeNode& node,
                                                                 const CompileOptions& options) {
  auto parsed = ParseBody(node.body);
  if (!parsed) {
    return std::unexpected(std::vector{FromSyntaxError(parsed.error(), node.id)});
  }
  const RunFunction run(parsed->statements);
  const std::uint32_t shift = parsed->first_line - 1;
  std::vector<Diagnostic> diagnostics;
  CheckBody(run.function(), node.id, node.injected, options, diagnostics);
  if (HasErrors(diagnostics)) {
    for (Diagnostic& each : diagnostics) ShiftLines(each.span, shift);
    return std::unexpected(std::move(diagnostics));
  }
  python::PrintedSource printed = run.Print();
  // The signature is ours and comes from no line.
  for (std::uint32_t& line : printed.source_lines) line = line > shift ? line - shift : 0;
  return RunnableBody{std::move(printed.text), std::move(printed.source_lines)};
}

}  // namespace caisson::workflow
