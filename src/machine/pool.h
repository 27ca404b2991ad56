// SPDX-License-Identifier: Apache-2.0
// Machines of a driver (its `Slot`) that are made before anybody asks for one: of each kind that
// was asked for lately, a few that wait for their name. Made by threads of its own. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"

namespace caisson::machine {

struct Kind {
  std::string image;  // id
  std::uint64_t disk_bytes = 0;
  auto operator<=>(const Kind&) const = default;
};

template <typename Slot, typename Kind = machine::Kind>
class Pool {
 public:
  using Make = std::function<Result<std::unique_ptr<Slot>>(const Kind&)>;
  using Discard = std::function<void(std::unique_ptr<Slot>)>;
  using Failed = std::function<void(const Status&)>;
  // Keeps `prepared` of each kind, of at most kKinds kinds; 0: none. The functions are called by
  // several threads at once; `failed`, which may be empty, when one could not be made, and at most
  // every kQuiet for each kind.
  Pool(std::size_t prepared, std::size_t threads, Make make, Discard discard, Failed failed = {});
  ~Pool();  // discards what there is

  // One of this kind, or null; more are made then.
  std::unique_ptr<Slot> Take(const Kind& kind);
  std::size_t ready(const Kind& kind) const;

  static constexpr std::size_t kKinds = 3;
  // A kind that nobody has asked for so long is given up.
  static constexpr std::chrono::minutes kKeep{30};
  static constexpr std::chrono::seconds kQuiet{10};

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAfterFailure{2};
  static constexpr std::chrono::seconds kIdle{2};
  struct Shelf {
    std::deque<std::unique_ptr<Slot>> ready;
    std::size_t being_made = 0;
    std::chrono::steady_clock::time_point wanted;      // last
    std::chrono::steady_clock::time_point not_before;  // after a failure
    std::chrono::steady_clock::time_point told;        // of a failure
  };
  void Run(const std::stop_token& stop);
  bool MakeOne(std::unique_lock<std::mutex>& lock);
  bool DiscardOld(std::unique_lock<std::mutex>& lock);
  typename std::map<Kind, Shelf>::iterator Lacking();
  void ForgetKinds();

  const std::size_t prepared_;
  const Make make_;
  const Discard discard_;
  const Failed failed_;
  mutable std::mutex mutex_;
  std::condition_variable_any work_;
  std::map<Kind, Shelf> shelves_;
  std::vector<std::unique_ptr<Slot>> old_;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

template <typename Slot, typename Kind>
Pool<Slot, Kind>::Pool(std::size_t prepared, std::size_t threads, Make make, Discard discard,
                       Failed failed)
    : prepared_(prepared),
      make_(std::move(make)),
      discard_(std::move(discard)),
      failed_(std::move(failed)) {
  if (prepared_ == 0) return;
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

template <typename Slot, typename Kind>
Pool<Slot, Kind>::~Pool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  for (auto& [kind, shelf] : shelves_) {
    for (auto& slot : shelf.ready) discard_(std::move(slot));
  }
  for (auto& slot : old_) discard_(std::move(slot));
}

template <typename Slot, typename Kind>
std::unique_ptr<Slot> Pool<Slot, Kind>::Take(const Kind& kind) {
  if (prepared_ == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  Shelf& shelf = shelves_[kind];
  shelf.wanted = Clock::now();
  std::unique_ptr<Slot> slot;
  if (!shelf.ready.empty()) {
    slot = std::move(shelf.ready.front());
    shelf.ready.pop_front();
  }
  ForgetKinds();
  work_.notify_all();
  return slot;
}

template <typename Slot, typename Kind>
std::size_t Pool<Slot, Kind>::ready(const Kind& kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = shelves_.find(kind);
  return found == shelves_.end() ? 0 : found->second.ready.size();
}

template <typename Slot, typename Kind>
void Pool<Slot, Kind>::ForgetKinds() {
  const auto last_wanted = [](const auto& a, const auto& b) {
    return a.second.wanted < b.second.wanted;
  };
  while (!shelves_.empty()) {
    const auto oldest = std::ranges::min_element(shelves_, last_wanted);
    if (shelves_.size() <= kKinds && Clock::now() - oldest->second.wanted < kKeep) return;
    // What is being made of it is discarded when it is done.
    for (auto& slot : oldest->second.ready) old_.push_back(std::move(slot));
    shelves_.erase(oldest);
  }
}

template <typename Slot, typename Kind>
void Pool<Slot, Kind>::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ForgetKinds();
    if (DiscardOld(lock) || MakeOne(lock)) continue;
    work_.wait_for(lock, stop, kIdle,
                   [this] { return !old_.empty() || Lacking() != shelves_.end(); });
  }
}

template <typename Slot, typename Kind>
bool Pool<Slot, Kind>::DiscardOld(std::unique_lock<std::mutex>& lock) {
  if (old_.empty()) return false;
  std::unique_ptr<Slot> slot = std::move(old_.back());
  old_.pop_back();
  lock.unlock();
  discard_(std::move(slot));
  lock.lock();
  return true;
}

template <typename Slot, typename Kind>
typename std::map<Kind, typename Pool<Slot, Kind>::Shelf>::iterator Pool<Slot, Kind>::Lacking() {
  return std::ranges::find_if(shelves_, [this](const auto& item) {
    const Shelf& shelf = item.second;
    return shelf.ready.size() + shelf.being_made < prepared_ && Clock::now() >= shelf.not_before;
  });
}

template <typename Slot, typename Kind>
bool Pool<Slot, Kind>::MakeOne(std::unique_lock<std::mutex>& lock) {
  const auto lacking = Lacking();
  if (lacking == shelves_.end()) return false;
  const Kind kind = lacking->first;
  ++lacking->second.being_made;
  lock.unlock();
  auto made = make_(kind);
  lock.lock();
  const auto shelf = shelves_.find(kind);
  if (shelf == shelves_.end()) {  // forgotten in the meantime
    if (made) old_.push_back(*std::move(made));
    return true;
  }
  if (shelf->second.being_made > 0) --shelf->second.being_made;
  if (made) {
    shelf->second.ready.push_back(*std::move(made));
    return true;
  }
  const auto now = Clock::now();
  shelf->second.not_before = now + kAfterFailure;
  const bool tells =
      failed_ && (shelf->second.told == Clock::time_point() || now - shelf->second.told >= kQuiet);
  if (!tells) return true;
  shelf->second.told = now;
  lock.unlock();
  failed_(made.error());
  lock.lock();
  return true;
}

}  // namespace caisson::machine
