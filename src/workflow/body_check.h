// SPDX-License-Identifier: Apache-2.0
// What the `run` function of a code node may say: the structure walk, the fields of `self`, the
// return rule, the builtin allowlist and, for the MicroPython runtime, what the artifact can do.
// Looks at the AST only; takes no text (body_text.h) and runs nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "python/ast.h"
#include "workflow/compiler.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

// The builtins that bodies may use (sorted), under every runtime. They are what the pinned artifact
// offers of CPython 3.12's builtins; a new artifact means a new table and a new version.
inline constexpr std::string_view kAllowlistVersion = "0.1a2";
inline constexpr std::string_view kAllowlistArtifactSha256 =
    "1c054a4d21d4a6589bc568821ebf562889988ddaaf8a17a2e2985a56cf228051";
std::span<const std::string_view> AllowedBuiltins();
// CPython 3.12's builtins that bodies may not use (sorted).
std::span<const std::string_view> RejectedBuiltins();

// Appends what is wrong with the body, the peer's first error first, then the others in source
// order, then warnings. `injected` is sorted. `run` is a FunctionDef or AsyncFunctionDef.
void CheckBody(const python::FunctionDef& run, std::string_view node_id,
               const std::vector<std::string>& injected, const CompileOptions& options,
               std::vector<Diagnostic>& out);

}  // namespace caisson::workflow
