// SPDX-License-Identifier: Apache-2.0
#include "http/handler_pool.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "http/io_thread.h"

namespace caisson::http {
namespace {

constexpr std::chrono::seconds kIdleLife{30};

}  // namespace

bool HandlerPool::TryRun(std::function<void()> task) {
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    ended.swap(ended_);
    if (idle_ > tasks_.size()) {
      tasks_.push_back(std::move(task));
      wake_.notify_one();
    } else if (threads_.size() < most_) {
      const auto self = threads_.emplace(threads_.end());
      try {
        const SignalsBlocked blocked;
        tasks_.push_back(std::move(task));
        ++idle_;
        *self = std::thread([this, self] { Work(self); });
      } catch (const std::system_error&) {  // no more threads for this process
        --idle_;
        tasks_.pop_back();
        threads_.erase(self);
        return false;
      }
    } else {
      return false;
    }
  }
  for (std::thread& thread : ended) thread.join();
  return true;
}

void HandlerPool::Work(std::list<std::thread>::iterator self) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool woken =
        wake_.wait_for(lock, kIdleLife, [&] { return stopping_ || !tasks_.empty(); });
    if (!tasks_.empty()) {
      --idle_;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      ++idle_;
      continue;
    }
    if (stopping_ || !woken) break;
  }
  --idle_;
  ended_.push_back(std::move(*self));
  threads_.erase(self);
  wake_.notify_all();
}

void HandlerPool::Stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  wake_.wait(lock, [&] { return threads_.empty(); });
  std::vector<std::thread> ended = std::move(ended_);
  ended_.clear();
  lock.unlock();
  for (std::thread& thread : ended) thread.join();
}

std::size_t HandlerPool::busy() const {
  const std::lock_guard lock(mutex_);
  return threads_.size() - idle_ + tasks_.size();
}

}  // namespace caisson::http
