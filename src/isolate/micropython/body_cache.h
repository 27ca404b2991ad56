// SPDX-License-Identifier: Apache-2.0
// Compiled bodies, as page deltas against a snapshot, by heap size and source. Bounded in bytes;
// what was used least recently goes first. Thread-safe; an entry stays alive while somebody holds
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "isolate/micropython/snapshot.h"

namespace caisson::isolate {

class BodyCache {
 public:
  explicit BodyCache(std::size_t limit_bytes) : limit_(limit_bytes) {}

  std::shared_ptr<const PageDelta> Find(std::uint64_t heap_bytes, std::string_view source);
  void Put(std::uint64_t heap_bytes, std::string_view source,
           std::shared_ptr<const PageDelta> body);

  std::size_t bytes() const;
  std::size_t count() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const PageDelta> body;
    std::size_t bytes = 0;
  };
  void Evict();

  mutable std::mutex mutex_;
  const std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;                                                // most recent first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;  // views into the keys
};

}  // namespace caisson::isolate
