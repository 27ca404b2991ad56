// SPDX-License-Identifier: Apache-2.0
// The gate's one thread: descriptors by epoll(7), edge-triggered, and timers. Work has ranks, and a
// turn of the loop spends a bounded time on each, so that none waits for long, however much another
// has to do; within a rank parties take turns (egress/gate/turns.h). A callback that has much to do
// does a piece of it and comes back by Soon. Callbacks may add and remove anything, themselves too.
// Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "egress/gate/turns.h"
#include "os/fd.h"

namespace caisson::egress::gate {

using Clock = std::chrono::steady_clock;

enum class Rank : std::uint8_t {
  kControl,  // the helper's channel: all of it, first in each turn
  kShort,    // questions for names, new connections: little work for each
  kBulk,     // bytes of connections
};

// Whose work it is: those of a rank take turns.
struct Lane {
  Rank rank = Rank::kShort;
  std::uint32_t party = 0;  // a machine's address; 0: the gate's own
};

class Loop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, …
  using Work = Turns::Work;
  // What a turn spends on kShort, and on kBulk, but for the piece that is under way then.
  static constexpr std::chrono::milliseconds kTurn{4};

  static Result<Loop> Make();

  // Calls `handler` each time that `fd` becomes ready for reading or writing, or has failed; errors
  // count as both. It is not called when nothing has changed, so it must go on until EAGAIN.
  Result<void> Watch(int fd, Lane lane, Handler handler);
  // To be called before `fd` is closed.
  void Forget(int fd);

  using TimerId = std::pair<Clock::time_point, std::uint64_t>;
  TimerId After(std::chrono::milliseconds delay, Work work);
  void Cancel(const TimerId& timer) { timers_.erase(timer); }
  // Once, behind what waits in this lane.
  void Soon(Lane lane, Work work) { TurnsOf(lane.rank).Add(lane.party, std::move(work)); }

  Clock::time_point now() const { return now_; }  // when the present callback began

  // Until Stop. Fails with os.syscall.
  Result<void> Run();
  void Stop() { stopped_ = true; }

 private:
  explicit Loop(os::UniqueFd epoll) : epoll_(std::move(epoll)) {}
  Turns& TurnsOf(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  bool HasWork() const;
  int Patience() const;
  Result<void> Collect();
  void Note(std::uint64_t id, std::uint32_t events);
  void RunTimers();
  void RunRank(Rank rank, Clock::duration most);

  struct Watched {
    int fd = -1;
    Lane lane;
    Handler handler;
    std::uint32_t events = 0;  // not yet told
  };
  os::UniqueFd epoll_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<int, std::uint64_t> ids_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> watched_;
  std::map<TimerId, Work> timers_;
  std::array<Turns, 3> ranks_;
  Clock::time_point now_ = Clock::now();
  bool stopped_ = false;
};

}  // namespace caisson::egress::gate
