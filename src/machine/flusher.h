// SPDX-License-Identifier: Apache-2.0
// Writes to disk what paused machines have in memory of theirs, one after the other, so that files
// survive a failure of the host. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace caisson::machine {

class Flusher {
 public:
  Flusher();
  // `disk`: a file as in machine/disk.h; fine when it is gone by then.
  void Add(std::string disk);

 private:
  void Run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any work_;
  std::deque<std::string> waiting_;
  std::jthread thread_;
};

}  // namespace caisson::machine
