// SPDX-License-Identifier: Apache-2.0
// One HTTP request of a node and its answer, in the terms of configurations. Not the guard: that is
// http/outbound.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "http/outbound.h"
#include "json/value.h"
#include "nodes/node.h"

namespace caisson::nodes {

// Of each wait for the other side; null waits as long as the whole request may take. Fails with
// nodes.failed when it is no number (a template may have yielded anything).
Result<http::OutboundTimes> TimesOf(const json::Value& timeout_seconds);

Result<http::OutboundResponse> Exchange(const Visit& visit, const http::OutboundRequest& request);

// Fails with nodes.failed, and the peer's words, for any status but 2xx.
Result<void> RaiseForStatus(const http::OutboundResponse& response);

// `text` in the form of a query or form: letters, digits and "_.-~" stay, a space becomes "+".
std::string FormEncode(std::string_view text);
// Pairs of a query or form: lists stand for their items, each under the same name.
std::string FormOf(const json::Object& fields);

}  // namespace caisson::nodes
