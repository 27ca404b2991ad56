// SPDX-License-Identifier: Apache-2.0
// Rows as the JSON that clients know. What is not there is left out, never null.
#pragma once

#include "api/context.h"
#include "json/value.h"

namespace caisson::api {

json::Value ViewOf(const Context& context, const store::Sandbox& sandbox);
// Of a request that made it or gave it a new ingress token.
json::Value ViewOf(const Context& context, const control::Made& made);
json::Value BandwidthOf(const store::Sandbox& sandbox);
json::Array ToArray(const std::vector<std::string>& texts);
json::Object ToObject(const std::map<std::string, std::string>& texts);

}  // namespace caisson::api
