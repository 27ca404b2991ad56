// SPDX-License-Identifier: Apache-2.0
// The index of a workflow file: its cron triggers, listeners and credential placeholders, found by
// a walk over the whole source, reachable or not. It describes; it decides nothing.
#pragma once

#include "json/value.h"
#include "python/ast.h"

namespace caisson::workflow {

// {"cron":[...],"listeners":[...],"credentials":[...]}
json::Value BuildIndex(const python::Module& module);

}  // namespace caisson::workflow
