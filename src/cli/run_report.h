// SPDX-License-Identifier: Apache-2.0
// How the end of a run is told: its error to people or as JSON, and the report of --report.
#pragma once

#include <string>

#include "cli/source.h"
#include "graph/run.h"
#include "json/value.h"
#include "workflow/diagnostic.h"

namespace caisson::cli {

// {"status","run_id","steps","node_visits","duration_ms","state","error"}
json::Value RunReport(const graph::RunResult& result);

// For people: what failed, the author's lines with their text, the hint, what the code printed.
// kJson and kSarif give one line of JSON.
std::string RenderRunError(const graph::RunError& error, const LoadedSource& source,
                           workflow::DiagnosticFormat format, bool color);

}  // namespace caisson::cli
