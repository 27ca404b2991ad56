// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/pool.h"

#include <algorithm>
#include <utility>

namespace caisson::machine::jail {
namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kAfterFailure{2};
constexpr std::chrono::seconds kIdle{2};
}  // namespace

Pool::Pool(std::size_t prepared, std::size_t threads, Make make, Discard discard, Failed failed)
    : prepared_(prepared),
      make_(std::move(make)),
      discard_(std::move(discard)),
      failed_(std::move(failed)) {
  if (prepared_ == 0) return;
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

Pool::~Pool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  for (auto& [kind, shelf] : shelves_) {
    for (auto& slot : shelf.ready) discard_(std::move(slot));
  }
  for (auto& slot : old_) discard_(std::move(slot));
}

std::unique_ptr<Slot> Pool::Take(const Kind& kind) {
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

std::size_t Pool::ready(const Kind& kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = shelves_.find(kind);
  return found == shelves_.end() ? 0 : found->second.ready.size();
}

void Pool::ForgetKinds() {
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

void Pool::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ForgetKinds();
    if (DiscardOld(lock) || MakeOne(lock)) continue;
    work_.wait_for(lock, stop, kIdle,
                   [this] { return !old_.empty() || Lacking() != shelves_.end(); });
  }
}

bool Pool::DiscardOld(std::unique_lock<std::mutex>& lock) {
  if (old_.empty()) return false;
  std::unique_ptr<Slot> slot = std::move(old_.back());
  old_.pop_back();
  lock.unlock();
  discard_(std::move(slot));
  lock.lock();
  return true;
}

std::map<Kind, Pool::Shelf>::iterator Pool::Lacking() {
  return std::ranges::find_if(shelves_, [this](const auto& item) {
    const Shelf& shelf = item.second;
    return shelf.ready.size() + shelf.being_made < prepared_ && Clock::now() >= shelf.not_before;
  });
}

bool Pool::MakeOne(std::unique_lock<std::mutex>& lock) {
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

}  // namespace caisson::machine::jail
