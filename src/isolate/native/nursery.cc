// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/nursery.h"

#include <utility>

namespace caisson::isolate::native {

Nursery::Nursery(std::unique_ptr<Zygote> zygote, const NativeOptions& options)
    : wanted_(options.spares),
      zygote_(std::move(zygote)),
      limits_(GroupLimits(ScriptLimits(), options)),
      worker_([this](const std::stop_token& stop) { Work(stop); }) {}

Nursery::~Nursery() {
  worker_.request_stop();
  worker_.join();
  // Ends all processes at once; their cgroups are empty afterwards.
  zygote_.reset();
}

std::optional<Spare> Nursery::Take(const os::CgroupLimits& limits) {
  const std::lock_guard lock(mutex_);
  if (!(limits == limits_)) {
    limits_ = limits;
    for (Spare& spare : spares_) {
      spare.socket.Reset();
      ended_.push_back(std::move(spare));
    }
    spares_.clear();
  }
  if (spares_.empty()) return std::nullopt;
  Spare spare = std::move(spares_.front());
  spares_.pop_front();
  return spare;
}

void Nursery::Bury(Spare ended) {
  {
    const std::lock_guard lock(mutex_);
    ended_.push_back(std::move(ended));
    // Now and not when it was taken: that would have cost the call the processor.
    refill_ = true;
  }
  changed_.notify_one();
}

bool Nursery::Refill() {
  os::CgroupLimits limits;
  {
    const std::lock_guard lock(mutex_);
    if (!refill_ || spares_.size() >= wanted_) return refill_ = false;
    limits = limits_;
  }
  // Whoever needs one and finds none makes it himself, and hears then why it cannot be made.
  auto spare = MakeSpare(*zygote_, limits);
  const std::lock_guard lock(mutex_);
  if (!spare || !*spare) return refill_ = false;
  (limits == limits_ ? spares_ : ended_).push_back(*std::move(*spare));
  return true;
}

bool Nursery::BuryOne() {
  Spare ended;
  {
    const std::lock_guard lock(mutex_);
    if (ended_.empty()) return false;
    ended = std::move(ended_.front());
    ended_.pop_front();
  }
  ended.socket.Reset();
  Await(ended);
  return true;
}

void Nursery::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (Refill() || BuryOne()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return refill_ || !ended_.empty(); });
  }
}

}  // namespace caisson::isolate::native
