// SPDX-License-Identifier: Apache-2.0
// Chat messages in the state, as JSON. A message in the state always has the full form
//   {"content", "additional_kwargs", "response_metadata", "type", "name", "id", ...}
// with a type of human, ai, system, function or tool and a string as id; ai adds tool_calls,
// invalid_tool_calls and usage_metadata, tool adds tool_call_id, artifact and status. Writers may
// use every shorter form that the peer accepts: a text, [role, text], {"role", "content", ...}.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "json/value.h"

namespace caisson::graph {

using IdMaker = std::function<std::string()>;

// The full form of one message, without an id of its own making ("id" is null when none was given).
// Fails with graph.message.
Result<json::Value> NormaliseMessage(const json::Value& message);

// One message or a list of them as a list of full forms (and removals), each with an id, so that
// nothing random is left to the reducer. Fails with graph.message.
Result<json::Value> NormaliseMessages(const json::Value& messages, const IdMaker& new_id);

// The reducer of `messages`: `right` (one message or a list) is appended to `left` (full forms);
// a message with a known id replaces that one, one of type "remove" takes it away, and
// "__remove_all__" as its id empties the list up to there.
Result<json::Value> AddMessages(const json::Value& left, const json::Value& right,
                                const IdMaker& new_id);

// A random UUID, version 4.
std::string RandomUuid();

}  // namespace caisson::graph
