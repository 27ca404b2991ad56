// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::egress::gate {

Result<Loop> Loop::Make() {
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return os::SyscallError("epoll_create1");
  return Loop(std::move(epoll));
}

Result<void> Loop::Watch(int fd, Handler handler) {
  auto watched = std::make_shared<Watched>(Watched{++last_id_, fd, std::move(handler)});
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {}};
  event.data.u64 = watched->id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return os::SyscallError("epoll_ctl");
  }
  by_fd_[fd] = watched;
  by_id_[watched->id] = std::move(watched);
  return {};
}

void Loop::Forget(int fd) {
  const auto found = by_fd_.find(fd);
  if (found == by_fd_.end()) return;
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
  by_id_.erase(found->second->id);
  by_fd_.erase(found);
}

Loop::TimerId Loop::After(std::chrono::milliseconds delay, Work work) {
  const TimerId timer{Clock::now() + delay, ++last_id_};
  timers_.emplace(timer, std::move(work));
  return timer;
}

int Loop::Patience() const {
  if (!soon_.empty()) return 0;
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void Loop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_ && !stopped_) {
    const Work work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
}

void Loop::RunSoon() {
  const std::vector<Work> works = std::exchange(soon_, {});
  for (const Work& work : works) {
    if (!stopped_) work();
  }
}

Result<void> Loop::Run() {
  stopped_ = false;
  std::array<epoll_event, 128> events;
  while (!stopped_) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Patience());
    if (count < 0 && errno != EINTR) return os::SyscallError("epoll_wait");
    now_ = Clock::now();
    for (int i = 0; i < count && !stopped_; ++i) {
      const epoll_event event = events[static_cast<std::size_t>(i)];
      const std::uint64_t id = event.data.u64;  // a copy: the structure is packed
      const auto found = by_id_.find(id);
      if (found == by_id_.end()) continue;  // forgotten by a callback before this one
      const std::shared_ptr<Watched> watched = found->second;
      watched->handler(event.events);
    }
    RunTimers();
    RunSoon();
  }
  return {};
}

}  // namespace caisson::egress::gate
