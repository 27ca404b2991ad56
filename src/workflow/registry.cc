// SPDX-License-Identifier: Apache-2.0
#include "workflow/registry.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace caisson::workflow {
namespace {

#include "workflow/model_table.inc"
#include "workflow/node_table.inc"

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`, letter case ignored; stops
// counting beyond `limit`.
std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = Lower(a[i - 1]);
      const char y = Lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x == y ? 0u : 1u)});
      if (i > 1 && j > 1 && x == Lower(b[j - 2]) && Lower(a[i - 2]) == y) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

const NodeField* NodeType::FindField(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &NodeField::name);
  return found == fields.end() ? nullptr : &*found;
}

std::span<const NodeType> NodeTypes() { return kNodeTypes; }

const NodeType* FindNodeType(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kNodeTypes, name, {}, &NodeType::name);
  return found != std::end(kNodeTypes) && found->name == name ? found : nullptr;
}

std::string NodePolicyRefusal(const NodeType& type, std::string_view node_id) {
  if (!type.restricted) return {};
  std::string text = "node '";
  text.append(node_id).append("': node type '").append(type.name);
  text +=
      "' is marked restricted for untrusted authors. This capability is disabled in restricted "
      "mode because it cannot be isolated from other tenants.";
  return text;
}

std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 128;  // keeps the cost of a hostile name bounded
  if (name.empty() || name.size() > kLongest) return {};
  std::size_t best = name.size() / 3;
  std::string_view nearest;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(name, candidate, best);
    if (distance < best || (distance == best && nearest.empty())) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string NodeTypeHint(std::string_view unknown) {
  std::vector<std::string_view> names;
  names.reserve(std::size(kNodeTypes) + 1);
  for (const NodeType& type : kNodeTypes) names.push_back(type.name);
  const std::string_view nearest = Nearest(unknown, names);
  if (!nearest.empty()) return "did you mean '" + std::string(nearest) + "'?";
  const std::string with_suffix = std::string(unknown) + "Node";
  return FindNodeType(with_suffix) ? "did you mean '" + with_suffix + "'?" : std::string();
}

ModelResult FindModel(std::string_view module, std::string_view name) {
  if (!std::ranges::binary_search(kModules, module)) return {ModelLookup::kNoSuchModule};
  const auto key = [](const Model& model) { return std::pair(model.module, model.name); };
  const auto* found = std::ranges::lower_bound(kModels, std::pair(module, name), {}, key);
  if (found == std::end(kModels) || key(*found) != std::pair(module, name)) {
    return {ModelLookup::kNotAModel};
  }
  return {ModelLookup::kModel, found};
}

}  // namespace caisson::workflow
