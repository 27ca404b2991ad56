// SPDX-License-Identifier: Apache-2.0
#include "workflow/code_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/body.h"
#include "errors/workflow.h"
#include "workflow/body_check.h"
#include "workflow/body_text.h"
#include "workflow/draft.h"
#include "workflow/literal.h"
#include "workflow/schema.h"

namespace caisson::workflow {

CodeClass::CodeClass(const python::ClassDef& definition, const Grammar& grammar,
                     std::vector<Diagnostic>& out)
    : definition_(definition) {
  for (const python::Stmt* member : definition.body) Collect(*member, grammar, out);
  std::ranges::sort(declared_);
  declared_.erase(std::ranges::unique(declared_).begin(), declared_.end());
  if (definition.bases.size() != 1 || BareName(definition.bases[0]) != "CodeNode") run_ = nullptr;
}

void CodeClass::Collect(const python::Stmt& member, const Grammar& grammar,
                        std::vector<Diagnostic>& out) {
  if (const python::FunctionDef* method = AsFunction(&member)) {
    if (method->name == "run") run_ = method;
    return;
  }
  const bool refused = grammar.Refused(&member);
  if (const auto* assign = python::IsA<python::AnnAssign>(&member)) {
    CollectField(BareName(assign->target), assign->value, refused, out);
  } else if (const auto* plain = python::IsA<python::Assign>(&member)) {
    const bool single = plain->targets.size() == 1;
    CollectField(single ? BareName(plain->targets[0]) : std::string_view{}, plain->value, refused,
                 out);
  }
}

void CodeClass::CollectField(std::string_view name, const python::Expr* value, bool refused,
                             std::vector<Diagnostic>& out) {
  if (name.empty()) {
    fields_unknown_ = true;
    return;
  }
  declared_.emplace_back(name);
  bytes_ += 2 * name.size() + 8;
  if (value == nullptr || refused) return;
  std::vector<Diagnostic> found;
  std::optional<json::Value> lowered =
      LowerLiteral(*value, {}, CredentialPolicy::kForbidWide, nullptr, found);
  for (Diagnostic& diagnostic : found) {
    // All else was said by the grammar pass. The peer evaluates the value as a whole.
    if (diagnostic.code != errors::kWorkflowLiteralUnevaluable) continue;
    diagnostic.peer_line = value->span.line;
    out.push_back(std::move(diagnostic));
  }
  if (!lowered) return;
  bytes_ += EstimateBytes(*lowered);
  defaults_.Set(name, *std::move(lowered));
}

std::vector<std::string> CodeClass::Injected(const json::Object& config) const {
  std::vector<std::string> injected = declared_;
  for (const auto& [key, value] : config) {
    if (!std::ranges::binary_search(declared_, key)) injected.push_back(key);
  }
  std::ranges::sort(injected);
  return injected;
}

bool CodeClass::Check(std::string_view node_id, const std::vector<std::string>& injected,
                      const CompileOptions& options, std::vector<Diagnostic>& out) {
  used_ = true;
  const auto [entry, is_new] = checked_.try_emplace(fmt::format("{}", fmt::join(injected, " ")));
  if (!is_new) return entry->second;
  std::vector<Diagnostic> found;
  CheckBody(*run_, node_id, injected, options, found);
  entry->second = true;
  for (Diagnostic& diagnostic : found) {
    if (fields_unknown_ && diagnostic.code == errors::kBodyUndeclaredField) continue;
    if (diagnostic.severity == Severity::kError) entry->second = false;
    const SourceSpan& span = diagnostic.span;
    if (!reported_.emplace(span.line, span.column, diagnostic.code.name).second) continue;
    out.push_back(std::move(diagnostic));
  }
  return entry->second;
}

const BodyTextResult& CodeClass::Body(const SourceLines& lines) {
  if (body_.text.empty()) {
    body_ = BodyText(*run_, lines);
    bytes_ += body_.text.size();
  }
  return body_;
}

CodeClasses::CodeClasses(const python::Module& module, const Grammar& grammar,
                         std::vector<Diagnostic>& out) {
  for (const python::Stmt* statement : module.body) {
    const auto* definition = python::IsA<python::ClassDef>(statement);
    if (definition == nullptr || IsSchemaClass(*definition)) continue;
    by_name_[definition->name] = classes_.size();
    classes_.emplace_back(*definition, grammar, out);
  }
}

CodeClass* CodeClasses::Find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &classes_[found->second];
}

}  // namespace caisson::workflow
