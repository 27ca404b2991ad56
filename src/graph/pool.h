// SPDX-License-Identifier: Apache-2.0
// The threads of one run. Created when a step first has several nodes that may wait or take long,
// kept until the run ends. Whoever hands in a batch works on it, too, so that batches may nest
// without a deadlock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace caisson::graph {

class Pool {
 public:
  // At most `threads` threads work at once, the callers of RunAll included (at least one).
  explicit Pool(std::size_t threads) : max_helpers_(threads > 0 ? threads - 1 : 0) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls task(0) ... task(count - 1), each once, on several threads; returns when all have ended.
  // `task` must not throw.
  void RunAll(std::size_t count, const std::function<void(std::size_t)>& task);

 private:
  struct Batch {
    const std::function<void(std::size_t)>* task;
    std::size_t count;
    std::size_t next = 0;  // the first task that nobody has taken
    std::size_t finished = 0;
  };
  void Help();
  // Takes tasks of `batch` until none is left. Called and returns with the lock held.
  void Work(Batch& batch, std::unique_lock<std::mutex>& lock);

  const std::size_t max_helpers_;
  std::mutex mutex_;
  std::condition_variable work_;      // batches_ has something, or stopping_
  std::condition_variable finished_;  // some batch's last task ended
  std::deque<Batch*> batches_;        // those with tasks to take
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace caisson::graph
