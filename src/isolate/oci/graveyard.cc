// SPDX-License-Identifier: Apache-2.0
#include "isolate/oci/graveyard.h"

#include <optional>
#include <utility>

namespace caisson::isolate::oci {
namespace {

constexpr std::size_t kMost = 16;

}  // namespace

Graveyard::Graveyard() : worker_([this](const std::stop_token& stop) { Work(stop); }) {}

Graveyard::~Graveyard() {
  worker_.request_stop();
  worker_.join();
}

void Graveyard::Bury(machine::oci::Container container) {
  container.Dismiss();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_.size() < kMost; });
  ended_.push_back(std::move(container));
  lock.unlock();
  changed_.notify_all();
}

void Graveyard::Work(const std::stop_token& stop) {
  for (;;) {
    std::optional<machine::oci::Container> next;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !ended_.empty(); })) return;
      next = std::move(ended_.front());
      ended_.pop_front();
    }
    next.reset();
    changed_.notify_all();
  }
}

}  // namespace caisson::isolate::oci
