// SPDX-License-Identifier: Apache-2.0
// The long-term store of workflows: JSON values under a namespace (a list of names) and a key,
// which outlive runs. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::nodes {

struct ItemKey {
  std::vector<std::string> space;  // not empty; its first name is the workspace of the run, if any
  std::string key;                 // not empty
};

class Items {
 public:
  // What an item becomes; `value` is null while there is none.
  using Change = std::function<Result<json::Value>(const json::Value* value)>;

  virtual ~Items() = default;
  // nullopt when there is none.
  virtual Result<std::optional<json::Value>> Get(const ItemKey& key) = 0;
  // Reads, changes and writes one item as one transaction: no other writer comes in between.
  // `change` may be called more than once and must have no other effect. When it fails, nothing is
  // written and its Status is handed on. Fails with a code of the store.
  virtual Result<void> Update(const ItemKey& key, const Change& change) = 0;
};

}  // namespace caisson::nodes
