// SPDX-License-Identifier: Apache-2.0
// What the functions of the C API answer, as JSON: {"ok": true, ...} or {"ok": false, "error"}.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "workflow/diagnostic.h"

namespace caisson::capi {

json::Object Success();
json::Object Failure(const Status& status);
// The error is that of the first diagnostic of severity error; all are shown.
json::Object Refusal(const std::vector<workflow::Diagnostic>& diagnostics);
json::Array ToJson(const std::vector<workflow::Diagnostic>& diagnostics);

// Text for the caller, by malloc; null without memory. What has no JSON form becomes a failure with
// json.not_representable.
char* Give(const json::Object& answer);

}  // namespace caisson::capi
