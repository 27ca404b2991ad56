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

Relay::Relay(Pipes& pipes, int guest, int world, std::string early, Looks looks) : pipes_(pipes) {
  out_.from = in_.to = guest;
  out_.to = in_.from = world;
  out_.inspect = std::move(looks.out);
  in_.inspect = std::move(looks.in);
  out_.buffer = std::move(early);
  if (!out_.inspect) out_.allowed = out_.buffer.size();
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
  if (way.buffer.empty() && way.ahead > 0) way.buffer.shrink_to_fit();  // not needed for long
  return Step::kProgress;
}

// A way that is looked at.
Relay::Step Relay::Copy(Way& way) {
  if (way.allowed > 0) return way.writable ? WriteBuffer(way) : Step::kBlocked;
  if (way.ahead > 0 || way.in_pipe > 0) return Splice(way, way.ahead);
  if (way.pipe) pipes_.Give(*std::exchange(way.pipe, std::nullopt));
  if (!way.buffer.empty()) {
    const Verdict verdict = way.inspect(way.buffer);
    if (verdict.refused) return Step::kRefused;
    way.allowed = verdict.size;
    way.ahead = verdict.ahead;
    if (way.allowed > 0) return Step::kProgress;
    if (way.ended) return Step::kBroken;  // half a request
  }
  if (!way.readable || way.ended || way.buffer.size() >= kBuffer) return Step::kBlocked;
  return Fill(way);
}

Relay::Step Relay::Fill(Way& way) {
  const std::size_t before = way.buffer.size();
  ssize_t got = 0;
  int error = 0;
  way.buffer.resize_and_overwrite(kBuffer, [&](char* bytes, std::size_t size) {
    do {
      got = ::recv(way.from, bytes + before, size - before, 0);
    } while (got < 0 && errno == EINTR);
    error = errno;
    return before + static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  });
  if (got < 0 && !IsBlocked(error)) return Step::kBroken;
  if (got > 0) return Step::kProgress;
  // It may stay as it is for long.
  way.buffer.shrink_to_fit();
  way.readable = false;
  way.ended = got == 0;
  return way.ended ? Step::kProgress : Step::kBlocked;
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

Relay::State Relay::Continue(bool guest_ready, bool world_ready,
                             std::chrono::steady_clock::time_point until) {
  out_.readable |= guest_ready;
  in_.writable |= guest_ready;
  in_.readable |= world_ready;
  out_.writable |= world_ready;
  for (bool moves = true; moves;) {
    moves = false;
    // What has come in may be what the way out waits for.
    for (Way* way : {&in_, &out_}) {
      const Step step = way->inspect ? Copy(*way) : Splice(*way, kPipe);
      if (step == Step::kRefused) return State::kRefused;
      if (step == Step::kBroken || !CloseIfEmpty(*way)) return State::kBroken;
      moves |= step == Step::kProgress;
    }
    if (moves && std::chrono::steady_clock::now() >= until) return State::kAgain;
  }
  return out_.closed && in_.closed ? State::kDone : State::kOpen;
}

}  // namespace caisson::egress::gate
