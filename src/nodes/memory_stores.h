// SPDX-License-Identifier: Apache-2.0
// Blobs and Items that live as long as the object: for tests, and for runs that keep nothing.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nodes/blobs.h"
#include "nodes/items.h"

namespace caisson::nodes {

class MemoryBlobs final : public Blobs {
 public:
  struct Blob {
    std::string content, name, mime_type;
  };

  Result<StoredBlob> Put(std::string_view content, std::string_view name,
                         std::string_view mime_type) override {
    const std::lock_guard lock(mutex_);
    blobs_.push_back({std::string(content), std::string(name), std::string(mime_type)});
    const std::string id = "atc_" + std::to_string(blobs_.size());
    return StoredBlob{id, "memory:" + id};
  }
  std::vector<Blob> all() const {
    const std::lock_guard lock(mutex_);
    return blobs_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Blob> blobs_;
};

class MemoryItems final : public Items {
 public:
  Result<std::optional<json::Value>> Get(const ItemKey& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find({key.space, key.key});
    return found != items_.end() ? std::optional(found->second) : std::nullopt;
  }
  Result<void> Update(const ItemKey& key, const Change& change) override {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find({key.space, key.key});
    CAISSON_ASSIGN(json::Value value, change(found != items_.end() ? &found->second : nullptr));
    items_.insert_or_assign({key.space, key.key}, std::move(value));
    return {};
  }
  // {"a/b": {"key": value}}
  json::Object All() const {
    const std::lock_guard lock(mutex_);
    json::Object all;
    for (const auto& [key, value] : items_) {
      std::string space;
      for (const std::string& name : key.first) space += (space.empty() ? "" : "/") + name;
      json::Value& entry = all[space];
      if (!entry.is_object()) entry = json::Object();
      entry.mutable_object().Set(key.second, value);
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::vector<std::string>, std::string>, json::Value> items_;
};

}  // namespace caisson::nodes
