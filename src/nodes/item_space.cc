// SPDX-License-Identifier: Apache-2.0
#include "nodes/item_space.h"

#include "nodes/python_text.h"

namespace caisson::nodes {

std::vector<std::string> ItemSpace(const State& state, const json::Value& names) {
  std::vector<std::string> space;
  const auto add = [&](const json::Value& name) {
    if (name.is_string() && !Strip(name.as_string()).empty()) {
      space.emplace_back(Strip(name.as_string()));
    }
  };
  if (const json::Value* workspace = state.Find(StateField::kWorkspaceId)) add(*workspace);
  const std::size_t own = space.size();
  if (names.is_array()) {
    for (const json::Value& name : names.as_array()) add(name);
  }
  if (space.size() == own) space.emplace_back("agent_chat_history");
  return space;
}

}  // namespace caisson::nodes
