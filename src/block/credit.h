// SPDX-License-Identifier: Apache-2.0
// The credit window of one run: how many bytes its reader is ready to take. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

namespace caisson::block {

class CreditWindow {
 public:
  explicit CreditWindow(std::optional<std::uint64_t> credit);  // none: no window

  // Whether there is one (lifted or not).
  bool exists() const { return exists_; }
  void Add(std::uint64_t bytes);
  // No credit is asked for any more.
  void Lift();

  // Stands still until the balance is above zero. False: stopped, or the deadline has come first.
  bool Wait(const std::stop_token& stop, std::chrono::steady_clock::time_point deadline);
  void Spend(std::uint64_t bytes);

 private:
  const bool exists_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool open_;  // no window, or lifted
  std::int64_t balance_ = 0;
};

}  // namespace caisson::block
