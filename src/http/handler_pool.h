// SPDX-License-Identifier: Apache-2.0
// Threads for blocking handlers: made when they are needed, at most `most`, gone after a while
// without work. Nothing waits in line: what finds no thread is told so.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace caisson::http {

class HandlerPool {
 public:
  explicit HandlerPool(std::size_t most) : most_(most) {}
  ~HandlerPool() { Stop(); }
  // False, and nothing was done, when all threads are busy or none can be made.
  bool TryRun(std::function<void()> task);
  // Waits for all that runs. TryRun fails from then on.
  void Stop();
  std::size_t busy() const;

 private:
  void Work(std::list<std::thread>::iterator self);

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // each has an idle thread that will take it
  std::list<std::thread> threads_;
  std::vector<std::thread> ended_;  // to be joined
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace caisson::http
