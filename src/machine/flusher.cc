// SPDX-License-Identifier: Apache-2.0
#include "machine/flusher.h"

#include <utility>

#include "machine/disk.h"

namespace caisson::machine {

Flusher::Flusher() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void Flusher::Add(std::string disk) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(disk));
  work_.notify_one();
}

void Flusher::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (work_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    const std::string disk = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    (void)SyncDisk(disk);
    lock.lock();
  }
}

}  // namespace caisson::machine
