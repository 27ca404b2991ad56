// SPDX-License-Identifier: Apache-2.0
// When to let messages gather. A sender that wakes its reader for each message spends most of its
// time on that; so once they come thick and fast, the reader looks for them every millisecond only.
// The first messages, and those that come one by one, are read at once.
#pragma once

#include <chrono>
#include <cstddef>

namespace caisson::isolate {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{1};

  // Of one read: how many messages it had, and whether it filled its buffer, so that more waits.
  void Heard(std::size_t messages, bool more_waits, Clock::time_point now = Clock::now()) {
    const bool is_dense = messages > 1 || now - last_ < kPause;
    streak_ = is_dense ? streak_ + messages : 0;
    more_waits_ = more_waits;
    last_ = now;
  }
  bool ShouldPause() const { return streak_ >= kLongStreak && !more_waits_; }

 private:
  static constexpr std::size_t kLongStreak = 32;

  std::size_t streak_ = 0;
  bool more_waits_ = false;
  Clock::time_point last_;
};

}  // namespace caisson::isolate
