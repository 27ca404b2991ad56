// SPDX-License-Identifier: Apache-2.0
// Machines that are made before anybody asks for one: of each kind that was asked for lately, a few
// that wait for their name. Made by threads of its own. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "machine/jail/slot.h"

namespace caisson::machine::jail {

struct Kind {
  std::string image;  // id
  std::uint64_t disk_bytes = 0;
  auto operator<=>(const Kind&) const = default;
};

class Pool {
 public:
  using Make = std::function<Result<std::unique_ptr<Slot>>(const Kind&)>;
  using Discard = std::function<void(std::unique_ptr<Slot>)>;
  using Failed = std::function<void(const Status&)>;
  // Keeps `prepared` of each kind, of at most kKinds kinds; 0: none. The functions are called by
  // several threads at once; `failed`, which may be empty, when one could not be made, and at most
  // every kQuiet for each kind.
  Pool(std::size_t prepared, std::size_t threads, Make make, Discard discard, Failed failed = {});
  ~Pool();  // discards what there is

  // One of this kind, or null; more are made then.
  std::unique_ptr<Slot> Take(const Kind& kind);
  std::size_t ready(const Kind& kind) const;

  static constexpr std::size_t kKinds = 3;
  // A kind that nobody has asked for so long is given up.
  static constexpr std::chrono::minutes kKeep{30};
  static constexpr std::chrono::seconds kQuiet{10};

 private:
  struct Shelf {
    std::deque<std::unique_ptr<Slot>> ready;
    std::size_t being_made = 0;
    std::chrono::steady_clock::time_point wanted;      // last
    std::chrono::steady_clock::time_point not_before;  // after a failure
    std::chrono::steady_clock::time_point told;        // of a failure
  };
  void Run(const std::stop_token& stop);
  bool MakeOne(std::unique_lock<std::mutex>& lock);
  bool DiscardOld(std::unique_lock<std::mutex>& lock);
  std::map<Kind, Shelf>::iterator Lacking();
  void ForgetKinds();

  const std::size_t prepared_;
  const Make make_;
  const Discard discard_;
  const Failed failed_;
  mutable std::mutex mutex_;
  std::condition_variable_any work_;
  std::map<Kind, Shelf> shelves_;
  std::vector<std::unique_ptr<Slot>> old_;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace caisson::machine::jail
