// SPDX-License-Identifier: Apache-2.0
// Numbers that JSON cannot hold.
#pragma once

#include "base/status.h"
#include "json/path.h"
#include "json/value.h"

namespace caisson::graph {

// Whether `value` holds a number that is not finite; `path` is then that of the first one.
bool FindNonJson(const json::Value& value, json::PathBuilder& path);

// Fails with graph.not_recordable, naming the path.
Result<void> CheckRecordable(const json::Value& value);

}  // namespace caisson::graph
