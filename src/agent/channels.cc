// SPDX-License-Identifier: Apache-2.0
#include "agent/channels.h"

#include <algorithm>
#include <utility>

namespace caisson::agent {

// Each byte is above what types and sizes have, and the first is not repeated: a mark is seen in
// one pass, and only data could contain it, which Send cuts up.
const std::array<unsigned char, kMarkBytes> kStreamMark = {
    0xc5, 0xa7, 0xf1, 0x9d, 0xe3, 0xb6, 0x8b, 0xd4, 0xfa, 0x91, 0xce, 0xad, 0xe8, 0x86, 0xf3, 0xbf};

namespace {

constexpr std::size_t kNumberBytes = 8;

std::string_view Mark() {
  return {reinterpret_cast<const char*>(kStreamMark.data()), kStreamMark.size()};
}

std::uint32_t Read32(const char* bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

void Write(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

}  // namespace

bool Channels::Watcher::Feed(unsigned char byte) {
  if (seen >= kMarkBytes) {
    number |= static_cast<std::uint64_t>(byte) << (8 * (seen - kMarkBytes));
    if (++seen < kMarkBytes + kNumberBytes) return false;
    seen = 0;
    return true;
  }
  if (byte == kStreamMark[seen]) {
    ++seen;
  } else {
    seen = byte == kStreamMark[0] ? 1 : 0;
  }
  number = 0;
  return false;
}

void Channels::Put(Type type, std::uint32_t channel, std::uint32_t size) {
  out_.push_back(static_cast<char>(type));
  Write(out_, channel, 4);
  Write(out_, size, 4);
}

void Channels::Reset() {
  channels_.clear();
  out_.clear();
  header_size_ = 0;
  data_left_ = 0;
  last_ = 0;
  broken_ = false;
}

void Channels::Greet(std::uint64_t number) {
  Reset();
  number_ = number;
  greeted_ = false;
  watcher_ = {};
  out_ += Mark();
  Write(out_, number, kNumberBytes);
}

// The number that the watcher has seen.
void Channels::Greeted() {
  const std::uint64_t number = watcher_.number;
  Reset();
  greeted_ = true;
  if (side_ == Side::kAgent) {
    out_ += Mark();
    Write(out_, number, kNumberBytes);
  }
  events_.OnGreeting(number);
}

bool Channels::Receive(std::string_view bytes) {
  while (!bytes.empty()) {
    // The host's side looks for one mark and then for no other.
    if (side_ == Side::kHost && greeted_) return Decode(bytes);
    std::size_t used = 0;
    bool complete = false;
    while (used < bytes.size() && !complete) {
      if (watcher_.seen == 0) {
        used = std::min(bytes.find(Mark().front(), used), bytes.size());
        if (used == bytes.size()) break;
      }
      complete = watcher_.Feed(static_cast<unsigned char>(bytes[used++]));
    }
    if (side_ == Side::kHost) {
      if (complete && watcher_.number == number_) Greeted();
    } else {
      if (greeted_ && !broken_) broken_ = !Decode(bytes.substr(0, used));
      if (complete) Greeted();
    }
    bytes.remove_prefix(used);
  }
  return !broken_;
}

bool Channels::Decode(std::string_view bytes) {
  while (!bytes.empty()) {
    if (broken_) return false;
    if (data_left_ > 0) {
      const std::string_view piece = bytes.substr(0, std::min(data_left_, bytes.size()));
      bytes.remove_prefix(piece.size());
      data_left_ -= piece.size();
      const auto found = channels_.find(data_channel_);
      if (found != channels_.end() && !found->second.closed) events_.OnData(data_channel_, piece);
      continue;
    }
    const std::size_t piece = std::min(kChannelHeaderBytes - header_size_, bytes.size());
    bytes.copy(header_.data() + header_size_, piece);
    bytes.remove_prefix(piece);
    header_size_ += piece;
    if (header_size_ < kChannelHeaderBytes) return true;
    header_size_ = 0;
    if (!Begin(static_cast<Type>(header_[0]), Read32(header_.data() + 1),
               Read32(header_.data() + 5))) {
      broken_ = true;
    }
  }
  return !broken_;
}

bool Channels::Begin(Type type, std::uint32_t number, std::uint32_t size) {
  if (type == Type::kOpen) {
    if (side_ == Side::kHost || number <= last_ || size != 0 || channels_.size() >= kMaxChannels) {
      return false;
    }
    last_ = number;
    channels_.emplace(number, Channel());
    events_.OnOpen(number);
    return true;
  }
  const auto found = channels_.find(number);
  if (found == channels_.end() || found->second.other_closed) return false;
  Channel& channel = found->second;
  switch (type) {
    case Type::kData:
      if (channel.other_ended || size == 0 || size > kMaxChannelData || size > channel.due) {
        return false;
      }
      channel.due -= size;
      data_channel_ = number;
      data_left_ = size;
      return true;
    case Type::kCredit:
      if (size == 0 || size > kChannelWindow - channel.credit) return false;
      channel.credit += size;
      if (!channel.closed) events_.OnRoom(number);
      return true;
    case Type::kEnd:
      if (channel.other_ended || size != 0) return false;
      channel.other_ended = true;
      if (!channel.closed) events_.OnEnd(number);
      return true;
    case Type::kClose: {
      if (size != 0) return false;
      channel.other_closed = true;
      const bool tell = !channel.closed;
      DropWhenOver(number);
      if (tell) events_.OnClose(number);
      return true;
    }
    case Type::kOpen:
      break;
  }
  return false;
}

std::uint32_t Channels::Open() {
  Put(Type::kOpen, ++last_, 0);
  channels_.emplace(last_, Channel());
  return last_;
}

std::size_t Channels::Room(std::uint32_t channel) const {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return 0;
  const Channel& state = found->second;
  return state.ended || state.closed || state.other_closed ? 0 : state.credit;
}

void Channels::Send(std::uint32_t channel, std::string_view bytes) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  found->second.credit -= std::min(bytes.size(), found->second.credit);
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, kMaxChannelData);
    // No mark within a frame.
    if (const std::size_t at = piece.find(Mark()); at != std::string_view::npos) {
      piece = piece.substr(0, at + kMarkBytes / 2);
    }
    Put(Type::kData, channel, static_cast<std::uint32_t>(piece.size()));
    out_ += piece;
    bytes.remove_prefix(piece.size());
  }
}

void Channels::Took(std::uint32_t channel, std::size_t bytes) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  Channel& state = found->second;
  state.taken += bytes;
  if (state.taken < kChannelWindow / 4 || state.closed || state.other_ended) return;
  state.due += state.taken;
  Put(Type::kCredit, channel, static_cast<std::uint32_t>(std::exchange(state.taken, 0)));
}

void Channels::End(std::uint32_t channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second.ended || found->second.closed) return;
  found->second.ended = true;
  Put(Type::kEnd, channel, 0);
}

void Channels::Close(std::uint32_t channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second.closed) return;
  found->second.closed = true;
  Put(Type::kClose, channel, 0);
  DropWhenOver(channel);
}

void Channels::DropWhenOver(std::uint32_t channel) {
  const auto found = channels_.find(channel);
  if (found->second.closed && found->second.other_closed) channels_.erase(found);
}

}  // namespace caisson::agent
