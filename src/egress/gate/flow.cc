// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/flow.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace caisson::egress::gate {
namespace {

constexpr std::size_t kPipe = 256u << 10;  // asked for; the kernel may give less
constexpr std::size_t kAtOnce = 1u << 20;  // bytes of one way before others have their turn

bool IsBlocked(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

std::optional<os::FdPair> Pipes::Take() {
  if (!kept_.empty()) {
    os::FdPair pipe = std::move(kept_.back());
    kept_.pop_back();
    return pipe;
  }
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_NONBLOCK | O_CLOEXEC) != 0) return std::nullopt;
  ::fcntl(fds[1], F_SETPIPE_SZ, static_cast<int>(kPipe));
  return os::FdPair{os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

void Pipes::Give(os::FdPair pipe) {
  if (kept_.size() < kKept) kept_.push_back(std::move(pipe));
}

void ResetOnClose(int fd) {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

Relay::Relay(Pipes& pipes, int guest, int world, std::string early, Inspect inspect)
    : pipes_(pipes), inspect_(std::move(inspect)) {
  out_.from = in_.to = guest;
  out_.to = in_.from = world;
  out_.buffer = std::move(early);
  if (!inspect_) out_.allowed = out_.buffer.size();
}

Relay::~Relay() {
  for (Way* way : {&out_, &in_}) {
    if (way->pipe && way->in_pipe == 0) pipes_.Give(*std::move(way->pipe));
  }
}

Relay::Step Relay::WriteBuffer(Way& way) {
  while (way.allowed > 0) {
    const ssize_t sent = ::send(way.to, way.buffer.data(), way.allowed, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && !IsBlocked(errno)) return Step::kBroken;
    if (sent < 0) {
      way.writable = false;
      return Step::kBlocked;
    }
    way.buffer.erase(0, static_cast<std::size_t>(sent));
    way.allowed -= static_cast<std::size_t>(sent);
  }
  return Step::kProgress;
}

// The way that is looked at.
Relay::Step Relay::Copy(Way& way) {
  if (way.allowed > 0) return way.writable ? WriteBuffer(way) : Step::kBlocked;
  if (way.ahead > 0 || way.in_pipe > 0) return Splice(way, way.ahead);
  if (way.pipe) pipes_.Give(*std::exchange(way.pipe, std::nullopt));
  if (!way.buffer.empty()) {
    const Verdict verdict = inspect_(way.buffer);
    if (verdict.refused) return Step::kRefused;
    way.allowed = verdict.size;
    way.ahead = verdict.ahead;
    if (way.allowed > 0) return Step::kProgress;
    if (way.ended) return Step::kBroken;  // half a request
  }
  if (!way.readable || way.ended || way.buffer.size() >= kBuffer) return Step::kBlocked;
  const std::size_t before = way.buffer.size();
  way.buffer.resize(kBuffer);
  ssize_t got = 0;
  do {
    got = ::recv(way.from, way.buffer.data() + before, kBuffer - before, 0);
  } while (got < 0 && errno == EINTR);
  way.buffer.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
  if (way.buffer.empty()) way.buffer.shrink_to_fit();
  if (got < 0 && !IsBlocked(errno)) return Step::kBroken;
  if (got < 0) {
    way.readable = false;
    return Step::kBlocked;
  }
  way.ended = got == 0;
  return Step::kProgress;
}

// Takes `most` bytes at most.
Relay::Step Relay::Splice(Way& way, std::uint64_t most) {
  if (way.allowed > 0) return way.writable ? WriteBuffer(way) : Step::kBlocked;
  if (way.in_pipe > 0 && way.writable) {
    const ssize_t sent = ::splice(way.pipe->first.get(), nullptr, way.to, nullptr, way.in_pipe,
                                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (sent < 0 && errno == EINTR) return Step::kProgress;
    if (sent < 0 && !IsBlocked(errno)) return Step::kBroken;
    if (sent < 0) {
      way.writable = false;
      return Step::kBlocked;
    }
    way.in_pipe -= static_cast<std::size_t>(sent);
    return Step::kProgress;
  }
  if (way.in_pipe > 0 || !way.readable || way.ended || most == 0) return Step::kBlocked;
  if (!way.pipe && !(way.pipe = pipes_.Take())) return Step::kBroken;
  const ssize_t got = ::splice(way.from, nullptr, way.pipe->second.get(), nullptr,
                               static_cast<std::size_t>(std::min<std::uint64_t>(kPipe, most)),
                               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (got < 0 && errno == EINTR) return Step::kProgress;
  if (got > 0) {
    way.in_pipe = static_cast<std::size_t>(got);
    if (way.ahead > 0) way.ahead -= way.in_pipe;
    return Step::kProgress;
  }
  if (got < 0 && !IsBlocked(errno)) return Step::kBroken;
  pipes_.Give(*std::exchange(way.pipe, std::nullopt));
  way.readable = false;
  way.ended = got == 0;
  return way.ended ? Step::kProgress : Step::kBlocked;
}

// Tells `to` that no more will come. False when that fails.
bool Relay::CloseIfEmpty(Way& way) {
  if (way.closed || !way.ended || way.in_pipe > 0 || !way.buffer.empty()) return true;
  way.closed = true;
  return ::shutdown(way.to, SHUT_WR) == 0;
}

Relay::State Relay::Continue(bool guest_ready, bool world_ready) {
  out_.readable |= guest_ready;
  in_.writable |= guest_ready;
  in_.readable |= world_ready;
  out_.writable |= world_ready;
  bool again = false;
  for (Way* way : {&out_, &in_}) {
    Step step = Step::kProgress;
    // A step moves a pipe or a buffer at most, in or out.
    for (std::size_t steps = 0; step == Step::kProgress; ++steps) {
      if (steps == 2 * kAtOnce / kBuffer) {
        again = true;
        break;
      }
      step = way == &out_ && inspect_ ? Copy(*way) : Splice(*way, kPipe);
    }
    if (step == Step::kRefused) return State::kRefused;
    if (step == Step::kBroken || !CloseIfEmpty(*way)) return State::kBroken;
  }
  if (out_.closed && in_.closed) return State::kDone;
  return again ? State::kAgain : State::kOpen;
}

}  // namespace caisson::egress::gate
