// SPDX-License-Identifier: Apache-2.0
// Waits for containers that have been dismissed, so that no caller does. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "machine/oci/container.h"

namespace caisson::isolate::oci {

class Graveyard {
 public:
  Graveyard();
  ~Graveyard();  // waits for all

  // Dismisses it. Blocks while too many are waited for.
  void Bury(machine::oci::Container container);

 private:
  void Work(const std::stop_token& stop);

  std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  std::deque<machine::oci::Container> ended_;
  std::jthread worker_;  // last: it uses the others
};

}  // namespace caisson::isolate::oci
