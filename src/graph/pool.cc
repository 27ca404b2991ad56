// SPDX-License-Identifier: Apache-2.0
#include "graph/pool.h"

#include <algorithm>
#include <system_error>

namespace caisson::graph {

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Pool::RunAll(std::size_t count, const std::function<void(std::size_t)>& task) {
  Batch batch{&task, count};
  std::unique_lock lock(mutex_);
  batches_.push_back(&batch);
  const std::size_t wanted = count - 1;
  while (idle_ < wanted && helpers_.size() < max_helpers_) {
    try {
      helpers_.emplace_back([this] { Help(); });
      ++idle_;  // it will be, until it takes a task
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those that are there do the work
    }
  }
  if (wanted > 0) work_.notify_all();
  Work(batch, lock);
  finished_.wait(lock, [&] { return batch.finished == batch.count; });
}

void Pool::Work(Batch& batch, std::unique_lock<std::mutex>& lock) {
  while (batch.next < batch.count) {
    const std::size_t taken = batch.next++;
    if (batch.next == batch.count) std::erase(batches_, &batch);
    lock.unlock();
    (*batch.task)(taken);
    lock.lock();
    // Once the last task is counted, the batch may be gone.
    if (++batch.finished == batch.count) {
      finished_.notify_all();
      return;
    }
  }
}

void Pool::Help() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || !batches_.empty(); });
    if (stopping_) return;
    --idle_;
    Work(*batches_.front(), lock);
    ++idle_;
  }
}

}  // namespace caisson::graph
