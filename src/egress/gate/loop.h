// SPDX-License-Identifier: Apache-2.0
// The gate's one thread: descriptors by epoll(7), edge-triggered, and timers. Callbacks may add and
// remove anything, themselves too. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::egress::gate {

using Clock = std::chrono::steady_clock;

class Loop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, …
  using Work = std::function<void()>;

  static Result<Loop> Make();

  // Calls `handler` each time that `fd` becomes ready for reading or writing, or has failed; errors
  // count as both. It is not called when nothing has changed, so it must go on until EAGAIN.
  Result<void> Watch(int fd, Handler handler);
  // To be called before `fd` is closed.
  void Forget(int fd);

  using TimerId = std::pair<Clock::time_point, std::uint64_t>;
  TimerId After(std::chrono::milliseconds delay, Work work);
  void Cancel(const TimerId& timer) { timers_.erase(timer); }
  // Once, after what is ready now.
  void Soon(Work work) { soon_.push_back(std::move(work)); }

  Clock::time_point now() const { return now_; }  // when the present callbacks began

  // Until Stop. Fails with os.syscall.
  Result<void> Run();
  void Stop() { stopped_ = true; }

 private:
  explicit Loop(os::UniqueFd epoll) : epoll_(std::move(epoll)) {}
  int Patience() const;
  void RunTimers();
  void RunSoon();

  struct Watched {
    std::uint64_t id = 0;
    int fd = -1;
    Handler handler;
  };
  os::UniqueFd epoll_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<int, std::shared_ptr<Watched>> by_fd_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> by_id_;
  std::map<TimerId, Work> timers_;
  std::vector<Work> soon_;
  Clock::time_point now_ = Clock::now();
  bool stopped_ = false;
};

}  // namespace caisson::egress::gate
