// SPDX-License-Identifier: Apache-2.0
// What runs after, before and beside what (wiring.h).
#include <algorithm>
#include <utility>

#include "workflow/migrate/wiring.h"

namespace caisson::workflow::migrate {

const Node* GraphModel::Find(std::string_view id) const {
  const auto found = std::ranges::find(nodes, id, &Node::id);
  return found == nodes.end() ? nullptr : &*found;
}

std::vector<std::string> GraphModel::After(std::string_view id) const {
  std::vector<std::string> after;
  for (const auto& [source, target] : edges) {
    if (source == id) after.push_back(target);
  }
  for (const Branch& branch : branches) {
    if (branch.source != id) continue;
    for (const auto& [key, target] : branch.mapping) after.push_back(target);
    // Where it may lead is not known: anywhere.
    if (branch.mapping.empty()) {
      for (const Node& node : nodes) after.push_back(node.id);
    }
  }
  return after;
}

std::set<std::string> GraphModel::Reached(std::string_view from, std::string_view without) const {
  std::set<std::string> reached;
  std::vector<std::string> queue = After(from);
  while (!queue.empty()) {
    const std::string id = std::move(queue.back());
    queue.pop_back();
    if (id == without || !reached.insert(id).second) continue;
    for (std::string& next : After(id)) queue.push_back(std::move(next));
  }
  return reached;
}

bool GraphModel::MayRunBeside(std::string_view id) const {
  std::set<std::string> sources = {std::string(kStart)};
  for (const Node& node : nodes) sources.insert(node.id);
  for (const std::string& source : sources) {
    const auto plain =
        std::ranges::count(edges, source, &std::pair<std::string, std::string>::first);
    const auto conditional = std::ranges::count(branches, source, &Branch::source);
    if (plain + conditional < 2) continue;
    if (source == id || Reached(source).contains(std::string(id))) return true;
  }
  return false;
}

bool GraphModel::EndTogether(const std::vector<std::string>& ids) const {
  std::set<std::pair<std::string, int>> origins;
  for (const std::string& id : ids) {
    std::string at = id;
    int steps = 0;
    // Back along the only way in.
    while (true) {
      std::vector<std::string> before;
      for (const auto& [source, target] : edges) {
        if (target == at) before.push_back(source);
      }
      const bool branched = std::ranges::any_of(branches, [&](const Branch& branch) {
        return branch.mapping.empty() || std::ranges::any_of(branch.mapping, [&](const auto& each) {
                 return each.second == at;
               });
      });
      if (branched || before.size() != 1 || steps > 1000) return false;
      at = before.front();
      ++steps;
      const auto ways = std::ranges::count(edges, at, &std::pair<std::string, std::string>::first);
      if (ways > 1 || at == kStart) break;
    }
    origins.emplace(at, steps);
  }
  return origins.size() == 1;
}

}  // namespace caisson::workflow::migrate
