// SPDX-License-Identifier: Apache-2.0
#include "workflow/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "errors/workflow.h"
#include "python/walk.h"
#include "workflow/literal.h"
#include "workflow/report.h"
#include "workflow/schema.h"

namespace caisson::workflow {
namespace {

using python::ExprKind;
using python::IsA;
using python::StmtKind;

constexpr std::array<std::string_view, 5> kGraphMethods = {
    "add_node", "add_edge", "add_conditional_edges", "set_entry_point", "set_finish_point"};

// Of the keywords that begin a compound statement; 0 for simple ones.
std::size_t HeadLength(StmtKind kind) {
  switch (kind) {
    case StmtKind::kIf:
      return 2;
    case StmtKind::kFor:
    case StmtKind::kTry:
    case StmtKind::kTryStar:
      return 3;
    case StmtKind::kWith:
      return 4;
    case StmtKind::kWhile:
    case StmtKind::kMatch:
    case StmtKind::kAsyncFor:
    case StmtKind::kAsyncWith:
      return 5;
    default:
      return 0;
  }
}

bool IsOrcheoModule(std::string_view module) {
  return module == "orcheo" || module.starts_with("orcheo.");
}

class GrammarPass {
 public:
  GrammarPass(Grammar& grammar, std::vector<Diagnostic>& out) : grammar_(grammar), out_(out) {}

  void Run(const python::Module& module) {
    for (const python::Stmt* statement : module.body) CheckTopLevel(*statement);
    CheckEntrypoints();
  }

 private:
  void CheckTopLevel(const python::Stmt& statement) {
    if (IsDocstring(statement)) return;
    switch (statement.kind) {
      case StmtKind::kImport:
        return CheckImport(*python::As<python::Import>(&statement));
      case StmtKind::kImportFrom:
        return CheckImportFrom(*python::As<python::ImportFrom>(&statement));
      case StmtKind::kClassDef:
        return CheckClass(*python::As<python::ClassDef>(&statement));
      case StmtKind::kFunctionDef:
      case StmtKind::kAsyncFunctionDef:
        return CheckBuilder(*AsFunction(&statement));
      default:
        Refuse(statement, errors::kWorkflowModuleStatement, HeadSpan(statement),
               "only Orcheo imports, restricted schema / CodeNode classes, and graph-builder "
               "functions are allowed at module level",
               "move it into a graph builder or into the run method of a CodeNode class");
    }
  }

  void CheckEntrypoints() {
    grammar_.entrypoints = entrypoints_.size();
    if (entrypoints_.empty()) {
      AddError(
          out_, errors::kWorkflowEntrypoint, {},
          fmt::format("script must define exactly one zero-argument '{}' entrypoint",
                      kEntrypointName),
          fmt::format("name the function that returns the finished graph '{}'", kEntrypointName));
    } else if (entrypoints_.size() > 1) {
      AddError(out_, errors::kWorkflowEntrypoint, HeadSpan(*entrypoints_[1]),
               fmt::format("script must define exactly one '{}' entrypoint", kEntrypointName),
               fmt::format("the first one is on line {}; remove one", entrypoints_[0]->span.line));
    }
  }

  // ---- imports

  void CheckImport(const python::Import& statement) {
    for (const python::Alias* alias : statement.names) {
      if (!IsOrcheoModule(alias->name)) RefuseModule(statement, alias->name);
    }
  }

  void CheckImportFrom(const python::ImportFrom& statement) {
    if (statement.level > 0) {
      Refuse(statement, errors::kWorkflowImportNotAllowed, statement.span,
             "relative imports are not allowed", "import from the orcheo package");
      return;
    }
    if (!IsOrcheoModule(statement.module)) return RefuseModule(statement, statement.module);
    for (const python::Alias* alias : statement.names) {
      if (alias->name != "*") continue;
      Refuse(statement, errors::kWorkflowImportNotAllowed, alias->span,
             "star imports are not allowed", "list the names that the file uses");
      out_.back().peer_line = statement.span.line;
    }
  }

  void RefuseModule(const python::Stmt& statement, std::string_view module) {
    Refuse(statement, errors::kWorkflowImportNotAllowed, statement.span,
           fmt::format("imports must come from Orcheo; '{}' is not allowed", module),
           "remove the import; what it was for belongs into a node");
  }

  // ---- classes

  void CheckClass(const python::ClassDef& cls) {
    if (!IsSchemaClass(cls)) return CheckCodeClass(cls);
    const std::size_t before = out_.size();
    Schemas::CheckGrammar(cls, out_);
    for (std::size_t i = before; i < out_.size(); ++i) {
      if (out_[i].severity == Severity::kError) grammar_.refused.insert(&cls);
    }
  }

  void CheckCodeClass(const python::ClassDef& cls) {
    bool has_form = CheckClassHead(cls);
    bool has_run = false;
    for (const python::Stmt* member : cls.body) CheckMember(cls, *member, has_form, has_run);
    if (!has_run && has_form) {
      Refuse(cls, errors::kWorkflowClassForm, HeadSpan(cls),
             fmt::format("class '{}' must define a 'run' method", cls.name),
             "add `def run(self, state, config):` that returns a dict");
    }
  }

  // False when the class is none of ours at all, so that its members mean nothing.
  bool CheckClassHead(const python::ClassDef& cls) {
    if (!cls.decorator_list.empty()) {
      Refuse(cls, errors::kWorkflowClassForm, cls.decorator_list[0]->span,
             fmt::format("decorators are not allowed on class '{}'", cls.name),
             "remove the decorator");
      out_.back().peer_line = cls.span.line;
    }
    if (!cls.keywords.empty()) {
      Refuse(cls, errors::kWorkflowClassForm, cls.keywords[0]->span,
             fmt::format("metaclass / class keywords are not allowed on '{}'", cls.name),
             "remove the keyword");
      out_.back().peer_line = cls.span.line;
    }
    if (cls.bases.size() == 1 && BareName(cls.bases[0]) == "CodeNode") return true;
    Refuse(cls, errors::kWorkflowClassForm, HeadSpan(cls),
           fmt::format("class '{}' must inherit only from CodeNode", cls.name),
           fmt::format("write `class {}(CodeNode):`, or `class {}(BaseModel):` for a schema",
                       cls.name, cls.name));
    return false;
  }

  void CheckMember(const python::ClassDef& cls, const python::Stmt& member, bool has_form,
                   bool& has_run) {
    if (IsDocstring(member)) return;
    if (const python::FunctionDef* method = AsFunction(&member)) {
      if (method->name == "run") has_run = true;
      if (has_form) CheckMethod(cls, *method);
      return;
    }
    if (!has_form) return;
    if (const auto* assign = IsA<python::Assign>(&member)) {
      const bool single = assign->targets.size() == 1;
      return CheckField(cls, member, single ? assign->targets[0] : nullptr, assign->value);
    }
    if (const auto* assign = IsA<python::AnnAssign>(&member)) {
      return CheckField(cls, member, assign->target, assign->value);
    }
    Refuse(member, errors::kWorkflowClassForm, HeadSpan(member),
           fmt::format("class '{}' may only declare config fields and a 'run' method", cls.name),
           "move it into run");
  }

  void CheckMethod(const python::ClassDef& cls, const python::FunctionDef& method) {
    if (method.name != "run") {
      Refuse(method, errors::kWorkflowClassForm, HeadSpan(method),
             fmt::format("class '{}' may only define a 'run' method, not '{}'; define '{}' as a "
                         "nested function inside 'run' instead",
                         cls.name, method.name, method.name));
    } else if (!method.decorator_list.empty()) {
      Refuse(method, errors::kWorkflowClassForm, method.decorator_list[0]->span,
             fmt::format("decorators are not allowed on '{}.run'", cls.name),
             "remove the decorator");
      out_.back().peer_line = method.span.line;
    }
  }

  void CheckField(const python::ClassDef& cls, const python::Stmt& member,
                  const python::Expr* target, const python::Expr* value) {
    const std::string_view field = BareName(target);
    if (field.empty()) {
      Refuse(member, errors::kWorkflowClassForm, HeadSpan(member),
             fmt::format("class '{}' fields must be simple assignments", cls.name),
             "write `name: type = value` or `name = value`, one field a line");
      return;
    }
    if (field.starts_with('_')) {
      Refuse(member, errors::kWorkflowClassForm, HeadSpan(member),
             fmt::format("class '{}' field '{}' may not start with '_'", cls.name, field),
             "rename the field");
      return;
    }
    if (value != nullptr) CheckDefault(member, field, *value);
  }

  void CheckDefault(const python::Stmt& member, std::string_view field, const python::Expr& value) {
    std::vector<Diagnostic> found;
    LowerLiteral(value, fmt::format("field '{}'", field), CredentialPolicy::kForbidWide, nullptr,
                 found);
    for (Diagnostic& diagnostic : found) {
      // Evaluation is the business of a later phase.
      if (diagnostic.code == errors::kWorkflowLiteralUnevaluable) continue;
      if (diagnostic.severity == Severity::kError) grammar_.refused.insert(&member);
      out_.push_back(std::move(diagnostic));
    }
  }

  // ---- builders

  void CheckBuilder(const python::FunctionDef& function) {
    CheckSignature(function);
    for (const python::Stmt* statement : function.body) CheckStatement(function, *statement);
    for (const python::Stmt* statement : function.body) {
      if (!grammar_.Refused(statement)) Sweep(*statement);
    }
    if (function.name == kEntrypointName) entrypoints_.push_back(&function);
  }

  void CheckSignature(const python::FunctionDef& function) {
    if (!function.decorator_list.empty()) {
      AddError(out_, errors::kWorkflowBuilderForm, function.decorator_list[0]->span,
               fmt::format("decorators are not allowed on graph builder '{}'", function.name),
               "remove the decorator")
          .peer_line = function.span.line;
    }
    const python::Arguments& args = *function.args;
    if (!args.args.empty() || !args.posonlyargs.empty() || !args.kwonlyargs.empty() ||
        args.vararg != nullptr || args.kwarg != nullptr) {
      AddError(out_, errors::kWorkflowBuilderForm, HeadSpan(function),
               fmt::format("graph builder '{}' must take zero arguments", function.name),
               "remove the parameters");
    }
  }

  void CheckStatement(const python::FunctionDef& function, const python::Stmt& statement) {
    if (IsDocstring(statement)) return;
    if (const auto* assign = IsA<python::Assign>(&statement)) return CheckAssign(*assign);
    if (const auto* expression = IsA<python::ExprStmt>(&statement)) {
      if (const auto* call = IsA<python::Call>(expression->value)) {
        return CheckMethodCall(statement, *call);
      }
    }
    if (const auto* ret = IsA<python::Return>(&statement)) return CheckReturn(function, *ret);
    RefuseInBuilder(statement, HeadSpan(statement),
                    fmt::format("graph builder '{}' may only build and wire the graph; this "
                                "construct is not allowed",
                                function.name),
                    "write out every node and edge; decide and loop at run time, by conditional "
                    "edges or in a CodeNode");
  }

  void CheckAssign(const python::Assign& assign) {
    if (assign.targets.size() != 1 || BareName(assign.targets[0]).empty()) {
      RefuseInBuilder(assign, assign.span,
                      "only single-name assignments are allowed in the entrypoint",
                      "write one `name = Call(...)` a line");
      return;
    }
    const auto* call = IsA<python::Call>(assign.value);
    if (call == nullptr) {
      RefuseInBuilder(assign, assign.value->span,
                      "entrypoint assignments must construct a graph or node",
                      "write the value where it is used");
      out_.back().peer_line = assign.span.line;
    } else if (BareName(call->func).empty()) {
      RefuseInBuilder(assign, call->func->span,
                      "entrypoint assignments must call a graph or node class directly",
                      "import the class by its name and call that");
      out_.back().peer_line = assign.span.line;
    }
  }

  void CheckMethodCall(const python::Stmt& statement, const python::Call& call) {
    const python::Attribute* method = MethodOfName(call.func);
    if (method == nullptr) {
      RefuseInBuilder(statement, call.span,
                      "only graph-assembly method calls are allowed as statements",
                      "call a method of a graph variable, such as graph.add_node(...)");
    } else if (std::ranges::find(kGraphMethods, method->attr) == kGraphMethods.end()) {
      RefuseInBuilder(
          statement, call.span,
          fmt::format("method '{}' is not an allowed graph-assembly method", method->attr),
          "use add_node, add_edge, add_conditional_edges, set_entry_point or "
          "set_finish_point");
    }
  }

  void CheckReturn(const python::FunctionDef& function, const python::Return& statement) {
    if (statement.value == nullptr) {
      RefuseInBuilder(
          statement, statement.span,
          fmt::format("graph builder '{}' must return the assembled graph", function.name),
          "write `return graph`");
      return;
    }
    if (!BareName(statement.value).empty()) return;
    if (const auto* call = IsA<python::Call>(statement.value)) {
      const python::Attribute* method = MethodOfName(call->func);
      if (method != nullptr && method->attr == "compile") return;
    }
    RefuseInBuilder(
        statement, statement.value->span,
        fmt::format("graph builder '{}' must return the graph or 'graph.compile()'", function.name),
        "assign the graph to a name and return that");
    out_.back().peer_line = statement.span.line;
  }

  // Breadth first, as the peer walks; what stands inside a refused construct is not looked at.
  void Sweep(const python::Stmt& statement) {
    queue_.assign(1, python::NodeRef(&statement));
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      const python::NodeRef node = queue_[next];
      if (const python::Expr* expr = node.expr()) {
        const std::string refusal = Refusal(*expr);
        if (!refusal.empty()) {
          RefuseInBuilder(statement, expr->span, refusal, SweepHint(*expr));
          out_.back().code = errors::kWorkflowConstructNotAllowed;
          continue;
        }
      }
      python::ForEachChild(node, [this](python::NodeRef child) { queue_.push_back(child); });
    }
  }

  static std::string Refusal(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLambda:
        return "lambdas are not allowed";
      case ExprKind::kListComp:
      case ExprKind::kSetComp:
      case ExprKind::kDictComp:
      case ExprKind::kGeneratorExp:
        return "comprehensions are not allowed in construction code";
      case ExprKind::kSubscript:
        return "subscript access is not allowed in construction code";
      case ExprKind::kStarred:
        return "starred / unpacking arguments are not allowed";
      case ExprKind::kAwait:
      case ExprKind::kYield:
      case ExprKind::kYieldFrom:
        return "await / yield are not allowed in construction code";
      case ExprKind::kAttribute: {
        const std::string_view name = python::As<python::Attribute>(&expr)->attr;
        if (!name.starts_with('_')) return {};
        return fmt::format("access to private/dunder attribute '{}' is not allowed", name);
      }
      case ExprKind::kName: {
        const std::string_view name = python::As<python::Name>(&expr)->id;
        if (!name.starts_with('_')) return {};
        return fmt::format("private/underscore name '{}' is not allowed", name);
      }
      default:
        return {};
    }
  }

  static std::string SweepHint(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kAttribute:
      case ExprKind::kName:
        return "use a name that does not begin with an underscore";
      default:
        return "write the finished values; a code node can compute at run time";
    }
  }

  void RefuseInBuilder(const python::Stmt& statement, SourceSpan span, std::string message,
                       std::string hint) {
    grammar_.builder_statement_refused = true;
    Refuse(statement, errors::kWorkflowBuilderForm, span, std::move(message), std::move(hint));
  }

  void Refuse(const python::Stmt& statement, ErrorCode code, SourceSpan span, std::string message,
              std::string hint = {}) {
    grammar_.refused.insert(&statement);
    AddError(out_, code, span, std::move(message), std::move(hint));
  }

  Grammar& grammar_;
  std::vector<Diagnostic>& out_;
  std::vector<const python::FunctionDef*> entrypoints_;
  std::vector<python::NodeRef> queue_;
};

}  // namespace

Grammar CheckGrammar(const python::Module& module, std::vector<Diagnostic>& out) {
  Grammar grammar;
  GrammarPass(grammar, out).Run(module);
  return grammar;
}

bool IsDocstring(const python::Stmt& statement) {
  const auto* expression = IsA<python::ExprStmt>(&statement);
  return expression != nullptr && StringLiteral(*expression->value).has_value();
}

const python::FunctionDef* AsFunction(const python::Stmt* statement) {
  if (statement->kind != StmtKind::kFunctionDef && statement->kind != StmtKind::kAsyncFunctionDef) {
    return nullptr;
  }
  return python::As<python::FunctionDef>(statement);
}

SourceSpan HeadSpan(const python::Stmt& statement) {
  SourceSpan span = statement.span;
  if (span.end_line == span.line) return span;
  std::size_t length = 0;
  if (const auto* cls = IsA<python::ClassDef>(&statement)) {
    length = std::string_view("class ").size() + cls->name.size();
  } else if (const python::FunctionDef* function = AsFunction(&statement)) {
    const bool async = statement.kind == StmtKind::kAsyncFunctionDef;
    length = std::string_view(async ? "async def " : "def ").size() + function->name.size();
  } else {
    length = HeadLength(statement.kind);
  }
  if (length == 0) return span;
  span.end_line = span.line;
  span.end_column = span.column + static_cast<std::uint32_t>(length);
  return span;
}

std::string_view BareName(const python::Expr* expr) {
  const auto* name = IsA<python::Name>(expr);
  return name == nullptr ? std::string_view{} : name->id;
}

const python::Attribute* MethodOfName(const python::Expr* callee) {
  const auto* attribute = IsA<python::Attribute>(callee);
  return attribute != nullptr && !BareName(attribute->value).empty() ? attribute : nullptr;
}

}  // namespace caisson::workflow
