// SPDX-License-Identifier: Apache-2.0
// Some threads that carry out runs, and a bounded line in front of them. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace caisson::block {

class RunQueue {
 public:
  struct Caps {
    std::size_t runs = 1;  // at a time; as many threads
    std::size_t waiting = 256;
    std::size_t waiting_bytes = std::size_t{512} << 20;  // of the requests that wait
  };
  using Ticket = std::uint64_t;

  explicit RunQueue(const Caps& caps);
  ~RunQueue();  // carries out what waits
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  const Caps& caps() const { return caps_; }

  // A place in the line, to be given to Add or GiveUp. Fails with block.busy. One request alone may
  // be larger than waiting_bytes.
  Result<void> Reserve(std::size_t bytes);
  void GiveUp(std::size_t bytes);
  Ticket Add(std::size_t bytes, std::function<void()> task);
  // True when the task had not begun; it never will.
  bool Remove(Ticket ticket);

 private:
  struct Waiting {
    Ticket ticket;
    std::size_t bytes;
    std::function<void()> task;
  };
  void Work();
  void Release(std::size_t bytes);

  const Caps caps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  std::size_t places_ = 0;  // reserved or waiting
  std::size_t bytes_ = 0;
  std::size_t idle_ = 0;  // threads without a task
  Ticket last_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace caisson::block
