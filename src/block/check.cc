// SPDX-License-Identifier: Apache-2.0
#include "block/check.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "errors/block.h"

namespace caisson::block {
namespace {

std::string Quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string RuntimesWith(const ModuleFacts& module) {
  std::string names;
  for (const RuntimeId id : kRuntimeIds) {
    if (!module.IsIn(id)) continue;
    names.append(names.empty() ? "" : ", ").append(RuntimeName(id));
  }
  return names;
}

Severity SeverityOf(const ImportedModule& import) {
  return import.certain ? Severity::kError : Severity::kWarning;
}

Finding Refused(const ImportedModule& import, const ModuleFacts& module) {
  return {errors::kBlockImportRefused, SeverityOf(import), import.span,
          "scripts may not import " + Quoted(import.name) + ": " + std::string(module.reason)};
}

Finding Missing(const ImportedModule& import, const ModuleFacts& module, RuntimeId runtime) {
  Finding finding{
      errors::kBlockLibraryUnavailable, SeverityOf(import), import.span,
      "the runtime " + std::string(RuntimeName(runtime)) + " does not have " + Quoted(import.name)};
  if (module.library != nullptr) {
    const std::string_view why = module.library->missing[static_cast<std::size_t>(runtime)];
    finding.message += " (" + std::string(why) + ")";
  }
  const std::string others = RuntimesWith(module);
  finding.hint = others.empty() ? "no runtime has it" : "it is in " + others;
  return finding;
}

Finding Unknown(const ImportedModule& import) {
  return {errors::kBlockUnknownLibrary, SeverityOf(import), import.span,
          "there is no module " + Quoted(import.name) +
              " in the standard library or the list of libraries",
          "caisson block libraries prints the list"};
}

std::optional<Finding> CheckImport(const ImportedModule& import, RuntimeId runtime) {
  const ModuleFacts module = FindModule(import.name);
  switch (module.kind) {
    case ModuleKind::kRefused:
      return Refused(import, module);
    case ModuleKind::kUnknown:
      return Unknown(import);
    default:
      if (module.IsIn(runtime)) return std::nullopt;
      return Missing(import, module, runtime);
  }
}

Finding SyntaxFinding(const python::SyntaxError& error) {
  return {errors::kBlockSyntax, Severity::kError, error.span, error.message,
          "the check knows the grammar of Python 3.12"};
}

void CheckNewer(const ScriptFacts& facts, RuntimeId runtime, std::vector<Finding>& found) {
  for (const NewerSyntax& newer : facts.newer) {
    if (newer.minor <= PythonMinor(runtime)) continue;
    found.push_back({errors::kBlockNewerSyntax, Severity::kError, newer.span,
                     std::string(newer.what) + " needs Python 3." + std::to_string(newer.minor) +
                         "; the runtime " + std::string(RuntimeName(runtime)) + " has 3." +
                         std::to_string(PythonMinor(runtime))});
  }
}

bool HasNewer(const ScriptFacts& facts, RuntimeId runtime) {
  return std::ranges::any_of(facts.newer, [runtime](const NewerSyntax& newer) {
    return newer.minor > PythonMinor(runtime);
  });
}

// The first runtime that fits; kCpython when none does.
RuntimeId ChooseFitting(const ScriptFacts& facts) {
  const auto* found =
      std::ranges::find_if(kRuntimeIds, [&facts](RuntimeId id) { return Fits(facts, id); });
  return found == kRuntimeIds.end() ? RuntimeId::kCpython : *found;
}

}  // namespace

std::vector<Finding> CheckScript(const ScriptFacts& facts, std::optional<RuntimeId> runtime) {
  if (facts.syntax_error) return {SyntaxFinding(*facts.syntax_error)};
  const RuntimeId id = runtime ? *runtime : ChooseFitting(facts);
  std::vector<Finding> found;
  found.reserve(facts.misplaced.size());
  for (const MisplacedStatement& misplaced : facts.misplaced) {
    found.push_back({errors::kBlockSyntax, Severity::kError, misplaced.span, misplaced.message});
  }
  for (const ImportedModule& import : facts.imports) {
    if (auto finding = CheckImport(import, id)) found.push_back(*std::move(finding));
  }
  CheckNewer(facts, id, found);
  if (facts.top_level_await.known()) {
    found.push_back({errors::kBlockTopLevelAwait, Severity::kWarning, facts.top_level_await,
                     "not every runtime lets a script await at its top level",
                     "put it into an async function and call asyncio.run"});
  }
  std::ranges::sort(found, {}, [](const Finding& finding) {
    return std::tuple(finding.span.line, finding.span.column, std::string_view(finding.message));
  });
  if (!facts.may_call_done) {
    found.push_back({errors::kBlockNoDone,
                     Severity::kWarning,
                     {},
                     "the script never calls done, so that it has no result",
                     "end it with done(result)"});
  }
  return found;
}

std::optional<Finding> FindMissingImport(const ScriptFacts& facts, RuntimeId runtime) {
  for (const ImportedModule& import : facts.imports) {
    if (!import.certain) continue;
    auto finding = CheckImport(import, runtime);
    if (finding && finding->code != errors::kBlockUnknownLibrary) return finding;
  }
  return std::nullopt;
}

bool Fits(const ScriptFacts& facts, RuntimeId runtime) {
  return !HasNewer(facts, runtime) && !FindMissingImport(facts, runtime);
}

}  // namespace caisson::block
