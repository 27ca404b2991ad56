// SPDX-License-Identifier: Apache-2.0
// Pieces of work of many parties for one thread: those of a party in their order, the parties by
// turns, so that one with much to do holds up the others for one piece at a time. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

namespace caisson::egress::gate {

class Turns {
 public:
  using Work = std::function<void()>;

  void Add(std::uint32_t party, Work work) {
    std::deque<Work>& own = waiting_[party];
    if (own.empty()) order_.push_back(party);
    own.push_back(std::move(work));
  }
  bool empty() const { return order_.empty(); }
  // What is to be done next. Requires that it is not empty.
  Work Take() {
    const std::uint32_t party = order_.front();
    order_.pop_front();
    const auto own = waiting_.find(party);
    Work work = std::move(own->second.front());
    own->second.pop_front();
    if (own->second.empty()) {
      waiting_.erase(own);
    } else {
      order_.push_back(party);
    }
    return work;
  }

 private:
  std::deque<std::uint32_t> order_;  // those that have work
  std::unordered_map<std::uint32_t, std::deque<Work>> waiting_;
};

}  // namespace caisson::egress::gate
