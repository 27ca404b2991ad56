// SPDX-License-Identifier: Apache-2.0
#include "block/run_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "errors/block.h"

namespace caisson::block {

RunQueue::RunQueue(const Caps& caps) : caps_(caps), idle_(caps.runs) {
  for (std::size_t i = 0; i < caps_.runs; ++i) threads_.emplace_back([this] { Work(); });
}

RunQueue::~RunQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Result<void> RunQueue::Reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  // Who finds a free thread does not wait.
  if (places_ >= caps_.waiting + idle_) {
    return Fail(errors::kBlockBusy, std::to_string(caps_.waiting) +
                                        " runs are waiting already; send the run again later");
  }
  if (bytes_ != 0 && bytes_ + bytes > caps_.waiting_bytes) {
    return Fail(errors::kBlockBusy, "the runs that wait hold " + std::to_string(bytes_) +
                                        " of at most " + std::to_string(caps_.waiting_bytes) +
                                        " bytes; send the run again later");
  }
  ++places_;
  bytes_ += bytes;
  return {};
}

void RunQueue::GiveUp(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Release(bytes);
}

void RunQueue::Release(std::size_t bytes) {
  --places_;
  bytes_ -= bytes;
}

RunQueue::Ticket RunQueue::Add(std::size_t bytes, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({++last_, bytes, std::move(task)});
  changed_.notify_one();
  return last_;
}

bool RunQueue::Remove(Ticket ticket) {
  std::function<void()> task;  // is destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(waiting_, ticket, &Waiting::ticket);
  if (found == waiting_.end()) return false;
  Release(found->bytes);
  task = std::move(found->task);
  waiting_.erase(found);
  return true;
}

void RunQueue::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Release(next.bytes);
    --idle_;
    lock.unlock();
    next.task();
    next.task = nullptr;
    lock.lock();
    ++idle_;
  }
}

}  // namespace caisson::block
