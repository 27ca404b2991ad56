// SPDX-License-Identifier: Apache-2.0
// What an agent remembers of a conversation from one run to the next: its turns in the long-term
// store, under a key that the configuration finds in the state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "nodes/items.h"
#include "nodes/node.h"

namespace caisson::nodes {

struct HistoryFields {
  const json::Value& candidates;  // templates of the conversation's key, the first that fits counts
  const json::Value& key_template;  // of the store's key, where {{conversation_key}} is that one
};

// nullopt when no candidate gives a key (text of letters, digits and ":_-", at most 256); that is
// warned of.
Result<std::optional<std::string>> FindHistoryKey(const Visit& visit, const HistoryFields& fields);

// The turns that a stored history holds, as messages. `field` is where their text is, else
// "content".
json::Array ReadHistory(const json::Value* stored, std::string_view field);

// The history with the turns of `observed` that it does not end with already; nullopt when there is
// nothing to add.
std::optional<json::Value> ExtendHistory(const json::Value* stored, const json::Array& observed,
                                         std::string_view field);

}  // namespace caisson::nodes
