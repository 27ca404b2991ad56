// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/body_cache.h"

namespace caisson::isolate {
namespace {

std::string KeyOf(std::uint64_t heap_bytes, std::string_view source) {
  std::string key = std::to_string(heap_bytes);
  key += ':';
  key += source;
  return key;
}

}  // namespace

std::shared_ptr<const PageDelta> BodyCache::Find(std::uint64_t heap_bytes,
                                                 std::string_view source) {
  const std::string key = KeyOf(heap_bytes, source);
  std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->body;
}

void BodyCache::Put(std::uint64_t heap_bytes, std::string_view source,
                    std::shared_ptr<const PageDelta> body) {
  std::string key = KeyOf(heap_bytes, source);
  const std::size_t bytes = key.size() + body->size() + sizeof(Entry);
  std::lock_guard lock(mutex_);
  if (bytes > limit_ || index_.contains(key)) return;
  entries_.push_front({std::move(key), std::move(body), bytes});
  index_.emplace(entries_.front().key, entries_.begin());
  bytes_ += bytes;
  Evict();
}

void BodyCache::Evict() {
  while (bytes_ > limit_) {
    bytes_ -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::size_t BodyCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t BodyCache::count() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace caisson::isolate
