// SPDX-License-Identifier: Apache-2.0
// The values that a workflow file may write: JSON literals, with templates and placeholders inside
// their strings, and names of imported models where the caller allows them. Evaluates nothing.
// Stateless, safe for all threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "python/ast.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

enum class CredentialPolicy : std::uint8_t {
  kAllow,       // config of built-in nodes
  kForbid,      // schemas: refused where the peer refuses them, in string values
  kForbidWide,  // config of code nodes: also in keys and broken over lines
};

// `from orcheo.x import a as b`: by the local name, where it comes from.
struct ImportedName {
  std::string_view module;
  std::string_view name;
};
using ModelImports = std::unordered_map<std::string_view, ImportedName>;

// The value of `expr`, or nothing and at least one diagnostic; goes on through siblings, so that
// all of them are reported, the peer's first one first. `where` begins the messages ("node 'x'").
// With `models`, names of imported models become their IR marker; null: names are refused.
//
// `-True` passes the peer's check of the form and fails on evaluation; it is reported with the code
// workflow.literal_unevaluable, so that a caller whose peer evaluates later can tell it apart (and
// may want to set its peer_line to that of the whole expression).
std::optional<json::Value> LowerLiteral(const python::Expr& expr, std::string_view where,
                                        CredentialPolicy credentials, const ModelImports* models,
                                        std::vector<Diagnostic>& out);

// What an imported name stands for in the peer's module.
struct ModelReference {
  std::optional<json::Value> marker;  // of a model class other than BaseModel
  bool failed = false;                // its module does not exist; a diagnostic says so
};
ModelReference LowerModelName(const python::Name& name, const ModelImports& models,
                              std::vector<Diagnostic>& out);

// The text of `expr` when it is a string literal (adjacent ones are one).
std::optional<std::string_view> StringLiteral(const python::Expr& expr);

// True when `text` holds a `[[credential]]`; `across_lines` also finds one that spans lines.
bool HasCredential(std::string_view text, bool across_lines = false);

// True when `text` (as the parser decodes it) holds a lone surrogate, which JSON cannot carry.
bool HasLoneSurrogate(std::string_view text);

}  // namespace caisson::workflow
