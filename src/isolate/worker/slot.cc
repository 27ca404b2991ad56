// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/slot.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace caisson::isolate {
namespace {

constexpr std::size_t kMaxSources = 1024;
constexpr std::size_t kMaxSourceBytes = 32u << 20;
constexpr std::size_t kPiecesPerSend = 16;

}  // namespace

SourceTable::Entry SourceTable::Find(const std::string& source) {
  if (const auto it = numbers_.find(source); it != numbers_.end()) return {.number = it->second};
  Entry entry{.number = next_++, .is_new = true};
  if (numbers_.size() >= kMaxSources || bytes_ + source.size() > kMaxSourceBytes) {
    entry.forget_all = !numbers_.empty();
    numbers_.clear();
    bytes_ = 0;
  }
  numbers_.emplace(source, entry.number);
  bytes_ += source.size();
  return entry;
}

void SourceTable::Clear() {
  numbers_.clear();
  bytes_ = 0;
}

void Slot::Queue(const PendingPtr& call) {
  call->slot = this;
  call->number = next_number++;
  call->sent = false;
  if (in_flight.empty()) call->head_since = PendingCall::Clock::now();
  in_flight.push_back(call);

  Output piece;
  const SourceTable::Entry entry = sources_.Find(call->job.source);
  if (entry.forget_all) piece.head += EncodeForgetSources();
  if (entry.is_new) piece.head += EncodeSource(entry.number, call->job.source);
  OutgoingFrame frame = EncodeCall({.call = call->number,
                                    .source = entry.number,
                                    .limits = call->job.limits,
                                    .payload = call->job.payload});
  piece.head += frame.head;
  piece.rest = frame.rest;
  piece.call = call;
  output_.push_back(std::move(piece));
}

bool Slot::Flush() {
  while (!output_.empty()) {
    std::array<iovec, 2 * kPiecesPerSend> parts;
    std::size_t count = 0;
    for (std::size_t i = 0; i < std::min(output_.size(), kPiecesPerSend); ++i) {
      const Output& piece = output_[i];
      const std::size_t of_head = std::min(piece.sent, piece.head.size());
      const std::size_t of_rest = piece.sent - of_head;
      parts[count++] = {const_cast<char*>(piece.head.data()) + of_head,
                        piece.head.size() - of_head};
      parts[count++] = {const_cast<char*>(piece.rest.data()) + of_rest,
                        piece.rest.size() - of_rest};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(worker->channel.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    auto left = static_cast<std::size_t>(n);
    while (!output_.empty()) {
      Output& piece = output_.front();
      const std::size_t size = piece.head.size() + piece.rest.size();
      const std::size_t now = std::min(left, size - piece.sent);
      piece.sent += now;
      left -= now;
      if (piece.sent < size) break;
      piece.call->sent = true;
      output_.pop_front();
    }
  }
  return true;
}

Slot::Received Slot::Receive() {
  const FrameReader::Room room = reader_.Prepare();
  ssize_t n = 0;
  do {
    n = ::recv(worker->channel.get(), room.data, room.size, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
  if (n <= 0) return Received::kClosed;
  reader_.Commit(static_cast<std::size_t>(n));
  return Received::kSome;
}

std::optional<ReplyMessage> Slot::NextReply() {
  if (in_flight.empty()) {
    if (!reader_.empty()) violation = "it sent what nobody had asked for";
    return std::nullopt;
  }
  const PendingCall& head = *in_flight.front();
  FrameReader::Frame frame{};
  switch (reader_.Next(MaxReplyBytes(head.job.limits), frame)) {
    case FrameReader::State::kNeedMore:
      return std::nullopt;
    case FrameReader::State::kViolation:
      violation = "it sent what is no frame, or one that is too large";
      return std::nullopt;
    case FrameReader::State::kFrame:
      break;
  }
  auto reply = DecodeReply(frame.type, frame.body, head.job.limits);
  if (!reply || reply->call != head.number) {
    violation = "it sent what is no reply to its call";
    return std::nullopt;
  }
  return reply;
}

void Slot::Reset() {
  worker.reset();
  output_.clear();
  reader_ = FrameReader();
  sources_.Clear();
  head_fate.reset();
  violation.clear();
  dead_seen = false;
}

}  // namespace caisson::isolate
