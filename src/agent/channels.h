// SPDX-License-Identifier: Apache-2.0
// Many connections over one byte stream, for machines whose host has no other way in: the virtual
// serial port of a virtual machine. Host and agent have one object each. No system calls here.
//
// A frame: type (u8), channel (u32), size (u32), little-endian; kData has `size` bytes after it,
// kCredit means `size` bytes more may be sent. The host opens channels, whose numbers only grow.
// Each side may send kWindow bytes per channel beyond what the other has taken, so neither keeps
// more than that. kEnd: nothing more comes; kClose: nothing is taken any more either, and the
// channel is gone once both have said it.
//
// The stream may begin in the middle of one that another process had, as in a copy of a machine. So
// the host begins with a mark that no frame contains and a number, the agent forgets all channels
// then and answers with the same, and the host passes over everything until that comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace caisson::agent {

inline constexpr std::size_t kChannelWindow = 256u << 10;
inline constexpr std::size_t kMaxChannels = 512;
inline constexpr std::size_t kMaxChannelData = 32u << 10;  // of one frame
inline constexpr std::size_t kChannelHeaderBytes = 9;
inline constexpr std::size_t kMarkBytes = 16;
extern const std::array<unsigned char, kMarkBytes> kStreamMark;

class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  // All channels are gone; the host's number.
  virtual void OnGreeting(std::uint64_t number) = 0;
  virtual void OnOpen(std::uint32_t channel) = 0;  // the agent's side alone
  virtual void OnData(std::uint32_t channel, std::string_view bytes) = 0;
  virtual void OnRoom(std::uint32_t channel) = 0;  // Room has become larger
  virtual void OnEnd(std::uint32_t channel) = 0;
  virtual void OnClose(std::uint32_t channel) = 0;  // after all of its data; Close it, too
};

class Channels {
 public:
  enum class Side : std::uint8_t { kHost, kAgent };
  Channels(Side side, ChannelEvents& events) : side_(side), events_(events) {}

  // What has come. False when it is no such stream: for good on the host's side, and until the next
  // greeting on the agent's.
  bool Receive(std::string_view bytes);
  // What is to be sent, in order; whoever sends it takes it out.
  std::string& out() { return out_; }

  void Greet(std::uint64_t number);  // the host's side
  bool greeted() const { return greeted_; }

  std::uint32_t Open();  // the host's side; requires count() < kMaxChannels and greeted()
  std::size_t count() const { return channels_.size(); }
  // How much Send takes now; 0 for a channel that is not there.
  std::size_t Room(std::uint32_t channel) const;
  void Send(std::uint32_t channel, std::string_view bytes);  // no more than Room
  // Of the data that came, so much has been handed on: the other side may send as much again.
  void Took(std::uint32_t channel, std::size_t bytes);
  void End(std::uint32_t channel);
  void Close(std::uint32_t channel);

 private:
  enum class Type : std::uint8_t { kOpen = 1, kData, kCredit, kEnd, kClose };
  struct Channel {
    std::size_t credit = kChannelWindow;             // what may be sent
    std::size_t due = kChannelWindow;                // what may come
    std::size_t taken = 0;                           // and is not yet told
    bool ended = false, closed = false;              // by us
    bool other_ended = false, other_closed = false;  // by the other side
  };
  // How many bytes of the mark and its number have been seen.
  struct Watcher {
    std::size_t seen = 0;
    std::uint64_t number = 0;
    bool Feed(unsigned char byte);  // true: the number is complete
  };

  void Put(Type type, std::uint32_t channel, std::uint32_t size);
  bool Decode(std::string_view bytes);
  bool Begin(Type type, std::uint32_t channel, std::uint32_t size);
  void Greeted();
  void Reset();
  void DropWhenOver(std::uint32_t channel);

  const Side side_;
  ChannelEvents& events_;
  std::map<std::uint32_t, Channel> channels_;
  std::string out_;
  Watcher watcher_;
  std::uint64_t number_ = 0;  // the host's own
  std::uint32_t last_ = 0;
  bool greeted_ = false;
  bool broken_ = false;
  std::array<char, kChannelHeaderBytes> header_{};
  std::size_t header_size_ = 0;
  std::uint32_t data_channel_ = 0;
  std::size_t data_left_ = 0;
};

}  // namespace caisson::agent
