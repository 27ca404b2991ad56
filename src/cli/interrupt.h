// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a request to stop. The first one stops the token's work cleanly; a second
// one ends the process at once. Make one before any other thread: signals are blocked in the
// creating thread and inherited so. At most one at a time.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

#include "cli/console.h"

namespace caisson::cli {

class Interrupt {
 public:
  explicit Interrupt(Console& console);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void Watch(int signals, int done);
  // On a thread of its own: whatever holds it up, the watcher hears a second signal.
  void Stop(int number);

  Console& console_;
  std::stop_source source_;
  sigset_t before_{};
  int done_ = -1;
  std::thread watcher_;
  std::thread stopper_;  // the watcher's, until that has been joined
};

}  // namespace caisson::cli
