// SPDX-License-Identifier: Apache-2.0
// caisson_call: one body of a code node, checked, then called in an isolate.
#pragma once

#include <stop_token>
#include <string_view>

#include "capi/engine.h"
#include "json/value.h"

namespace caisson::capi {

json::Object CallBody(Engine& engine, std::string_view body, std::string_view inputs,
                      const CallOptions& options, const std::stop_token& stop);

}  // namespace caisson::capi
