// SPDX-License-Identifier: Apache-2.0
#include "workflow/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "errors/workflow.h"
#include "python/parser.h"
#include "workflow/body_check.h"
#include "workflow/code_class.h"
#include "workflow/grammar.h"
#include "workflow/index.h"
#include "workflow/interpreter.h"
#include "workflow/report.h"
#include "workflow/schema.h"
#include "workflow/validate.h"

namespace caisson::workflow {
namespace {

ModelImports CollectImports(const python::Module& module) {
  ModelImports imports;
  for (const python::Stmt* statement : module.body) {
    const auto* import = python::IsA<python::ImportFrom>(statement);
    if (import == nullptr || import->module.data() == nullptr || import->level > 0) continue;
    for (const python::Alias* alias : import->names) {
      const bool renamed = alias->asname.data() != nullptr;
      imports[renamed ? alias->asname : alias->name] = {import->module, alias->name};
    }
  }
  return imports;
}

std::unordered_map<std::string_view, const python::FunctionDef*> CollectBuilders(
    const python::Module& module) {
  std::unordered_map<std::string_view, const python::FunctionDef*> builders;
  for (const python::Stmt* statement : module.body) {
    if (const python::FunctionDef* function = AsFunction(statement)) {
      builders[function->name] = function;
    }
  }
  return builders;
}

bool HasErrors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::kError;
  });
}

// The peer's first error first, then all others in the order of the source; what has no place last.
void Arrange(std::vector<Diagnostic>& diagnostics) {
  const auto peers = std::ranges::find_if(diagnostics, [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::kError && !diagnostic.peer_accepts;
  });
  const auto first = static_cast<std::size_t>(peers - diagnostics.begin());
  // Ends in the index, so that equal places keep their order. (std::stable_sort warns under clang.)
  std::vector<std::tuple<bool, bool, std::uint32_t, std::uint32_t, std::size_t>> order;
  order.reserve(diagnostics.size());
  for (std::size_t i = 0; i < diagnostics.size(); ++i) {
    const SourceSpan& span = diagnostics[i].span;
    order.emplace_back(i != first, !span.known(), span.line, span.column, i);
  }
  std::ranges::sort(order);
  std::vector<Diagnostic> arranged;
  arranged.reserve(diagnostics.size());
  for (const auto& place : order) arranged.push_back(std::move(diagnostics[std::get<4>(place)]));
  diagnostics = std::move(arranged);
}

// A text of the author's may hold lone surrogates; messages are UTF-8 and show them escaped.
void EscapeSurrogates(std::string& text) {
  if (!HasLoneSurrogate(text)) return;
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    if (i + 2 < text.size() && byte(i) == 0xED && byte(i + 1) >= 0xA0) {
      escaped += fmt::format("\\ud{:x}{:02x}", (byte(i + 1) & 0x3C) >> 2,
                             ((byte(i + 1) & 0x03) << 6) | (byte(i + 2) & 0x3F));
      i += 2;
    } else {
      escaped += text[i];
    }
  }
  text = std::move(escaped);
}

class Compilation {
 public:
  Compilation(const python::Tree& tree, const CompileOptions& options)
      : options_(options),
        module_(tree.module()),
        grammar_(CheckGrammar(module_, out_)),
        classes_(module_, grammar_, out_),
        schemas_(module_),
        session_{.options = options,
                 .grammar = grammar_,
                 .classes = classes_,
                 .schemas = schemas_,
                 .imports = CollectImports(module_),
                 .builders = CollectBuilders(module_),
                 .lines = SourceLines(tree.source()),
                 .out = &out_} {}

  CompileResult Run() {
    std::shared_ptr<FinishedGraph> root;
    const python::FunctionDef* entrypoint = Entrypoint();
    if (entrypoint != nullptr) root = Interpreter(session_).Run(*entrypoint);
    if (root != nullptr) ValidateGraph(*root->graph, out_, session_.hints);
    // What a refused statement would have used is not unused.
    if (entrypoint != nullptr && !grammar_.builder_statement_refused && !session_.too_large) {
      WarnOfUnused(entrypoint);
    }
    if (options_.strict) {
      for (Diagnostic& diagnostic : out_) diagnostic.severity = Severity::kError;
    }
    CompileResult result;
    if (root != nullptr && !HasErrors(out_)) {
      result.graph = root->graph;
      result.index.json = BuildIndex(module_);
      result.schemas = std::move(session_.schemas_in_use);
    }
    Arrange(out_);
    LimitDiagnostics(out_);
    for (Diagnostic& diagnostic : out_) {
      EscapeSurrogates(diagnostic.message);
      EscapeSurrogates(diagnostic.path);
    }
    result.diagnostics = std::move(out_);
    return result;
  }

 private:
  // Without an entrypoint, the only builder there is was probably meant to be it.
  const python::FunctionDef* Entrypoint() const {
    const auto& builders = session_.builders;
    if (const auto found = builders.find(kEntrypointName); found != builders.end()) {
      return found->second;
    }
    return builders.size() == 1 ? builders.begin()->second : nullptr;
  }

  void WarnOfUnused(const python::FunctionDef* entrypoint) {
    for (const python::Stmt* statement : module_.body) {
      if (const python::FunctionDef* function = AsFunction(statement)) {
        if (function != entrypoint) WarnOfUnusedBuilder(*function);
      } else if (const auto* cls = python::IsA<python::ClassDef>(statement)) {
        if (!grammar_.Refused(cls)) WarnOfUnusedClass(*cls);
      }
    }
  }

  void WarnOfUnusedBuilder(const python::FunctionDef& function) {
    if (session_.builders.at(function.name) != &function) return;
    if (session_.helpers.contains(function.name)) return;
    Trial("graph builder", function.name, [&] {
      session_.helper_stack.push_back(function.name);
      const std::shared_ptr<FinishedGraph> graph = Interpreter(session_).Run(function);
      session_.helper_stack.pop_back();
      if (graph != nullptr) ValidateGraph(*graph->graph, *session_.out, session_.hints);
    });
  }

  void WarnOfUnusedClass(const python::ClassDef& cls) {
    if (IsSchemaClass(cls)) {
      if (session_.used_schemas.contains(cls.name)) return;
      Trial("schema", cls.name, [&] { schemas_.Lower(cls.name, *session_.out); });
      return;
    }
    CodeClass* code = classes_.Find(cls.name);
    if (code == nullptr || &code->definition() != &cls || code->used() || !code->usable()) return;
    Trial("class", cls.name,
          [&] { code->Check(cls.name, code->Injected({}), options_, *session_.out); });
  }

  // Does `check` aside; its errors become warnings.
  template <typename Check>
  void Trial(std::string_view kind, std::string_view name, const Check& check) {
    if (++trials_ > kMaxTrials) return;
    std::vector<Diagnostic> found;
    session_.out = &found;
    const std::size_t schemas = session_.schemas_in_use.size();
    check();
    session_.schemas_in_use.resize(schemas);
    session_.out = &out_;
    for (const Diagnostic& diagnostic : found) {
      if (diagnostic.severity != Severity::kError) continue;
      AddWarning(
          out_, errors::kWorkflowUnusedDefinition, diagnostic.span,
          fmt::format("{} '{}' is not used, and could not be: {}", kind, name, diagnostic.message),
          diagnostic.hint);
    }
  }

  // A file with more unused definitions than this hears of the first ones.
  static constexpr int kMaxTrials = 200;

  const CompileOptions& options_;
  int trials_ = 0;
  std::vector<Diagnostic> out_;
  const python::Module& module_;
  Grammar grammar_;
  CodeClasses classes_;
  Schemas schemas_;
  Session session_;
};

CompileResult Refused(Diagnostic diagnostic) {
  CompileResult result;
  result.diagnostics.push_back(std::move(diagnostic));
  return result;
}

}  // namespace

CompileResult Compile(std::string_view source, const CompileOptions& options) {
  if (source.size() > kMaxSourceBytes) {
    return Refused({.code = errors::kWorkflowTooLarge,
                    .message = fmt::format(
                        "LangGraph script exceeds the permitted size of {} bytes", kMaxSourceBytes),
                    .hint = "split the workflow, or move data out of it"});
  }
  const auto tree = python::Parse(source, {.is_text = true, .max_bytes = kMaxSourceBytes});
  if (!tree) {
    const python::SyntaxError& error = tree.error();
    return Refused({.code = errors::kWorkflowParse,
                    .span = error.span,
                    .message = "could not parse workflow source: " + error.message,
                    .hint = "correct the syntax; nothing else was checked",
                    .peer_line = error.span.line});
  }
  return Compilation(*tree, options).Run();
}

}  // namespace caisson::workflow
