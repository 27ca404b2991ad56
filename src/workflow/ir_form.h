// SPDX-License-Identifier: Apache-2.0
// The form of an IR document: JSON to Graph, every object with exactly its fields, every field of
// its type. Says nothing about what ids, types and bodies mean (validate.h, loader.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json/value.h"
#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

// Nothing and at least one diagnostic (Diagnostic::path: `path` and what follows, "$.nodes[3].id")
// when the form is wrong. At most some hundreds of diagnostics are collected.
std::shared_ptr<const Graph> ReadGraphForm(const json::Value& document, const std::string& path,
                                           std::vector<Diagnostic>& out);

// The fields of a tool marker apart from its graph; appends what is wrong with them.
void CheckToolForm(const json::Object& marker, const std::string& path,
                   std::vector<Diagnostic>& out);

}  // namespace caisson::workflow
