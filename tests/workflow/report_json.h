// SPDX-License-Identifier: Apache-2.0
// What the compiler made of a file, whole, as JSON: for golden files and for comparison.
#pragma once

#include "json/value.h"
#include "workflow/compiler.h"

namespace caisson::workflow {

// {"ok", "ir"?, "index"?, "schemas"?, "diagnostics": [...]}
json::Value ReportJson(const CompileResult& result);

}  // namespace caisson::workflow
