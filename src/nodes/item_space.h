// SPDX-License-Identifier: Apache-2.0
// Where the items of a node stand in the long-term store. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "nodes/state.h"

namespace caisson::nodes {

// The run's workspace, if it has one, and the names in a node's list of them, trimmed; without any,
// "agent_chat_history".
std::vector<std::string> ItemSpace(const State& state, const json::Value& names);

}  // namespace caisson::nodes
