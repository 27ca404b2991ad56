// SPDX-License-Identifier: Apache-2.0
// Work on sandboxes that nobody has asked for, several pieces at once: one that takes long keeps
// nobody waiting. One piece at a time for each name: what is to be done for a name of which there
// is work under way is left out, and comes again with its next round. Thread-safe, but that one
// thread alone may call Await.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace caisson::control {

class Chores {
 public:
  explicit Chores(std::size_t threads);
  // Waits for what is under way; what has not begun is dropped.
  ~Chores();

  void Start(const std::string& name, std::function<void()> work);
  // Returns when all is done that was started since the last call, or when the time is over: what
  // is left goes on.
  void Await(std::chrono::milliseconds patience);

 private:
  struct Work {
    std::string name;
    std::uint64_t round = 0;
    std::function<void()> what;
  };
  void Run(const std::stop_token& stop);

  std::mutex mutex_;  // all below
  std::condition_variable_any came_;
  std::condition_variable_any ended_;
  std::deque<Work> waiting_;
  std::set<std::string> names_;  // of what waits and what is under way
  std::uint64_t round_ = 0;
  std::size_t left_ = 0;               // of this round
  std::vector<std::jthread> threads_;  // end first
};

}  // namespace caisson::control
