// SPDX-License-Identifier: Apache-2.0
// Moves bytes between a stream of channels (agent/channels.h) and one socket per channel, keeping
// half-closes both ways. One object on each side: the host's gets connections that it is given, the
// agent's makes a socket pair for every channel that is opened. Not blocking; for one loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "agent/channels.h"
#include "agent/guest/loop.h"
#include "os/fd.h"

namespace caisson::agent {

struct PumpCallbacks {
  std::function<void(std::uint64_t number)> on_greeting;  // all channels are gone
  std::function<void(os::UniqueFd socket)> on_open;       // the agent's side alone
  std::function<void()> on_broken;                        // the stream is none, or has ended
};

enum class StreamKind : std::uint8_t {
  kPort,        // its other end may be away for a while, as of a virtual serial port
  kConnection,  // once it has ended, nothing more comes
};

class ChannelPump final : private ChannelEvents {
 public:
  // `stream` is not blocking. Calls nothing before the loop runs.
  ChannelPump(guest::Loop& loop, Channels::Side side, os::UniqueFd stream, PumpCallbacks callbacks,
              StreamKind kind = StreamKind::kPort);
  ~ChannelPump() override;

  void Greet(std::uint64_t number);
  bool greeted() const { return channels_.greeted(); }
  // The host's side, once greeted. False when there are too many; the connection is closed then.
  bool Add(os::UniqueFd connection);
  std::size_t count() const { return channels_.count(); }

 private:
  struct Link {
    std::unique_ptr<guest::EventSource> source;
    std::string pending;  // came, and the socket has not taken it yet
    std::size_t written = 0;
    bool read_over = false;    // nothing more comes from the socket
    bool other_ended = false;  // nothing more comes from the other side
    bool other_closed = false;
    bool shut = false;     // the socket has been told so
    bool hung_up = false;  // its other end is gone
  };

  void OnGreeting(std::uint64_t number) override;
  void OnOpen(std::uint32_t channel) override;
  void OnData(std::uint32_t channel, std::string_view bytes) override;
  void OnRoom(std::uint32_t channel) override { WantOf(channel); }
  void OnEnd(std::uint32_t channel) override;
  void OnClose(std::uint32_t channel) override;

  void Take(std::uint32_t channel, os::UniqueFd socket);
  void OnStream(std::uint32_t events);
  void OnLink(std::uint32_t channel, std::uint32_t events);
  void ReadLink(std::uint32_t channel, Link& link);
  void WriteLink(std::uint32_t channel, Link& link);
  void Settle(std::uint32_t channel);
  void WantOf(std::uint32_t channel);
  void Drop(std::uint32_t channel);
  void Flush();
  void Break();
  bool congested() { return channels_.out().size() - sent_ > kMaxChannelData; }

  guest::Loop& loop_;
  PumpCallbacks callbacks_;
  const StreamKind kind_;
  Channels channels_;
  std::map<std::uint32_t, Link> links_;
  std::unique_ptr<guest::EventSource> stream_;
  guest::Timer again_;  // the port has no host for a moment
  std::size_t sent_ = 0;
  bool some_wait_ = false;  // of the links, until the stream is not congested
};

}  // namespace caisson::agent
