// SPDX-License-Identifier: Apache-2.0
// Counts the steps of a walk through what a guest left in its memory. No fuel pays for such a walk,
// so each step of it is counted against a limit, and every few thousand the clock is looked at.
#pragma once

#include <chrono>
#include <cstdint>

namespace caisson::isolate {

class Meter {
 public:
  using Clock = std::chrono::steady_clock;

  Meter(std::uint64_t limit, Clock::time_point deadline) : limit_(limit), deadline_(deadline) {}

  // To be called before `steps` are made. False, and then for ever, when they are too many or the
  // deadline has passed.
  bool Spend(std::uint64_t steps) {
    if (late_ || steps > limit_ - spent_) {
      spent_ = limit_;
      return false;
    }
    spent_ += steps;
    if (spent_ < look_at_clock_) return true;
    look_at_clock_ = spent_ + kClockEvery;
    late_ = Clock::now() > deadline_;
    return !late_;
  }

  bool late() const { return late_; }
  std::uint64_t limit() const { return limit_; }

 private:
  static constexpr std::uint64_t kClockEvery = 4096;

  std::uint64_t limit_;
  Clock::time_point deadline_;
  std::uint64_t spent_ = 0;
  std::uint64_t look_at_clock_ = kClockEvery;
  bool late_ = false;
};

}  // namespace caisson::isolate
