// SPDX-License-Identifier: Apache-2.0
// A zygote with a stock of spare calls, and a thread that keeps the stock and clears away calls
// that have ended, so that no caller waits for either. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "isolate/native/options.h"
#include "isolate/native/spare.h"
#include "isolate/native/zygote.h"
#include "os/cgroup.h"

namespace caisson::isolate::native {

class Nursery {
 public:
  // Makes the first spares at once, for jobs with the usual limits.
  Nursery(std::unique_ptr<Zygote> zygote, const NativeOptions& options);
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  Zygote& zygote() { return *zygote_; }
  // A spare whose cgroup has these limits, if there is one; from then on such ones are kept.
  std::optional<Spare> Take(const os::CgroupLimits& limits);
  // Takes over a call whose process has been killed.
  void Bury(Spare ended);

 private:
  void Work(const std::stop_token& stop);
  bool Refill();
  bool BuryOne();

  const std::size_t wanted_;
  std::unique_ptr<Zygote> zygote_;
  std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  os::CgroupLimits limits_;
  bool refill_ = true;
  std::deque<Spare> spares_;
  std::deque<Spare> ended_;
  std::jthread worker_;  // last: it uses the others
};

}  // namespace caisson::isolate::native
