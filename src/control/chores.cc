// SPDX-License-Identifier: Apache-2.0
#include "control/chores.h"

#include <utility>

namespace caisson::control {

Chores::Chores(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

Chores::~Chores() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Chores::Start(const std::string& name, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!names_.insert(name).second) return;
  waiting_.push_back({.name = name, .round = round_, .what = std::move(work)});
  ++left_;
  came_.notify_one();
}

void Chores::Await(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, patience, [this] { return left_ == 0; });
  ++round_;
  left_ = 0;
}

void Chores::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (came_.wait(lock, stop, [this] { return !waiting_.empty(); }) && !stop.stop_requested()) {
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work.what();
    lock.lock();
    names_.erase(work.name);
    if (work.round == round_ && --left_ == 0) ended_.notify_all();
  }
}

}  // namespace caisson::control
