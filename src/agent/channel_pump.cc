// SPDX-License-Identifier: Apache-2.0
#include "agent/channel_pump.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace caisson::agent {
namespace {

constexpr guest::milliseconds kNoHost{20};
// What is read from the stream at once: a virtual port gives no more than a page at a time.
constexpr std::size_t kStreamPiece = 64u << 10;

}  // namespace

ChannelPump::ChannelPump(guest::Loop& loop, Channels::Side side, os::UniqueFd stream,
                         PumpCallbacks callbacks, StreamKind kind)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      kind_(kind),
      channels_(side, *this),
      again_(loop, [this] { stream_->Want(EPOLLIN | EPOLLOUT); }) {
  stream_ = std::make_unique<guest::EventSource>(
      loop, std::move(stream), [this](std::uint32_t events) { OnStream(events); });
  stream_->Want(EPOLLIN);
}

ChannelPump::~ChannelPump() = default;

void ChannelPump::Greet(std::uint64_t number) {
  channels_.Greet(number);
  sent_ = 0;
  Flush();
}

bool ChannelPump::Add(os::UniqueFd connection) {
  if (!channels_.greeted() || channels_.count() >= kMaxChannels) return false;
  Take(channels_.Open(), std::move(connection));
  Flush();
  return true;
}

void ChannelPump::Take(std::uint32_t channel, os::UniqueFd socket) {
  Link& link = links_[channel];
  link.source = std::make_unique<guest::EventSource>(
      loop_, std::move(socket), [this, channel](std::uint32_t events) { OnLink(channel, events); });
  WantOf(channel);
}

void ChannelPump::Break() {
  for (auto& [channel, link] : links_) loop_.Retire(link.source);
  links_.clear();
  if (callbacks_.on_broken) callbacks_.on_broken();
}

void ChannelPump::OnStream(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    static thread_local std::array<char, kStreamPiece> buffer;
    const ssize_t n = ::read(stream_->fd(), buffer.data(), buffer.size());
    if (n > 0) {
      if (!channels_.Receive({buffer.data(), static_cast<std::size_t>(n)})) Break();
    } else if (kind_ == StreamKind::kConnection &&
               (n == 0 || (errno != EAGAIN && errno != EINTR))) {
      stream_->Want(0);
      return Break();
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      // The other end is away: a machine that was just copied gets it back.
      stream_->Want(0);
      again_.Set(kNoHost);
      if (n == 0 && (events & EPOLLHUP) != 0 && callbacks_.on_broken) callbacks_.on_broken();
      return;
    }
  }
  Flush();
}

void ChannelPump::Flush() {
  std::string& out = channels_.out();
  while (sent_ < out.size()) {
    const ssize_t n = ::write(stream_->fd(), out.data() + sent_, out.size() - sent_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent_ += static_cast<std::size_t>(n);
  }
  if (sent_ == out.size()) {
    out.clear();
    if (out.capacity() > 4 * kMaxChannelData) out.shrink_to_fit();
    sent_ = 0;
  } else if (sent_ > 4 * kMaxChannelData) {
    out.erase(0, std::exchange(sent_, 0));
  }
  if (!again_.is_set()) {
    stream_->Want(EPOLLIN | (out.empty() ? 0u : static_cast<unsigned>(EPOLLOUT)));
  }
  if (some_wait_ && !congested()) {
    some_wait_ = false;
    for (const auto& [channel, link] : links_) WantOf(channel);
  }
}

// --- one socket ---

void ChannelPump::WantOf(std::uint32_t channel) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return;
  Link& link = found->second;
  std::uint32_t wanted = EPOLLHUP;
  if (!link.read_over && channels_.Room(channel) > 0) {
    if (congested()) {
      some_wait_ = true;  // also when the stream takes all of it at once, right after this
    } else {
      wanted |= EPOLLIN;
    }
  }
  if (link.written < link.pending.size()) wanted |= EPOLLOUT;
  // A socket that is closed at its other end says so again and again.
  link.source->Want(link.hung_up && (wanted & EPOLLIN) == 0 ? 0 : wanted);
}

void ChannelPump::OnLink(std::uint32_t channel, std::uint32_t events) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return;
  Link& link = found->second;
  if ((events & EPOLLOUT) != 0) WriteLink(channel, link);
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) ReadLink(channel, link);
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) link.hung_up = true;
  if (link.hung_up && link.read_over) {
    // Nobody is there to take anything either.
    channels_.Close(channel);
    Drop(channel);
  } else {
    Settle(channel);
  }
  Flush();
}

void ChannelPump::ReadLink(std::uint32_t channel, Link& link) {
  static thread_local std::array<char, kMaxChannelData> buffer;
  while (!link.read_over && !congested()) {
    const std::size_t room = std::min(channels_.Room(channel), buffer.size());
    if (room == 0) return;
    const ssize_t n = ::read(link.source->fd(), buffer.data(), room);
    if (n > 0) {
      channels_.Send(channel, {buffer.data(), static_cast<std::size_t>(n)});
      if (static_cast<std::size_t>(n) < room) return;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    link.read_over = true;
    channels_.End(channel);
  }
}

void ChannelPump::WriteLink(std::uint32_t channel, Link& link) {
  std::size_t taken = 0;
  while (link.written < link.pending.size()) {
    const ssize_t n = ::send(link.source->fd(), link.pending.data() + link.written,
                             link.pending.size() - link.written, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      // Nobody reads any more: it is taken all the same, and its end will be told.
      taken += link.pending.size() - link.written;
      link.written = link.pending.size();
      break;
    }
    link.written += static_cast<std::size_t>(n);
    taken += static_cast<std::size_t>(n);
  }
  if (link.written == link.pending.size()) {
    link.pending = std::string();
    link.written = 0;
  }
  if (taken > 0) channels_.Took(channel, taken);
}

// Passes ends on once all data before them has been.
void ChannelPump::Settle(std::uint32_t channel) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return;
  Link& link = found->second;
  if (link.pending.empty() && link.other_closed) {
    channels_.Close(channel);
    return Drop(channel);
  }
  if (link.pending.empty() && link.other_ended && !link.shut) {
    ::shutdown(link.source->fd(), SHUT_WR);
    link.shut = true;
  }
  if (link.read_over && link.shut) {
    channels_.Close(channel);
    return Drop(channel);
  }
  WantOf(channel);
}

void ChannelPump::Drop(std::uint32_t channel) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return;
  loop_.Retire(found->second.source);
  links_.erase(found);
}

// --- from the other side ---

void ChannelPump::OnGreeting(std::uint64_t number) {
  for (auto& [channel, link] : links_) loop_.Retire(link.source);
  links_.clear();
  sent_ = 0;
  if (callbacks_.on_greeting) callbacks_.on_greeting(number);
}

void ChannelPump::OnOpen(std::uint32_t channel) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    channels_.Close(channel);
    return;
  }
  os::UniqueFd theirs(ends[1]);
  Take(channel, os::UniqueFd(ends[0]));
  if (callbacks_.on_open) callbacks_.on_open(std::move(theirs));
}

void ChannelPump::OnData(std::uint32_t channel, std::string_view bytes) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return channels_.Took(channel, bytes.size());
  Link& link = found->second;
  link.pending += bytes;
  WriteLink(channel, link);
  WantOf(channel);
}

void ChannelPump::OnEnd(std::uint32_t channel) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return;
  found->second.other_ended = true;
  Settle(channel);
}

void ChannelPump::OnClose(std::uint32_t channel) {
  const auto found = links_.find(channel);
  if (found == links_.end()) return channels_.Close(channel);
  found->second.other_closed = true;
  Settle(channel);
}

}  // namespace caisson::agent
