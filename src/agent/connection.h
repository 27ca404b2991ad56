// SPDX-License-Identifier: Apache-2.0
// The host's end of one operation: whole frames over a stream socket, blocking, with a bound on how
// long an agent may be silent. One thread receives; any thread sends.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "agent/frames.h"
#include "agent/messages.h"
#include "base/status.h"
#include "os/fd.h"

namespace caisson::agent {

inline constexpr std::chrono::milliseconds kPatience{30'000};

// What the agent says of a failure, as a Status (agent.*).
std::unexpected<Status> FailureStatus(const Failure& failure);

class Connection {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  explicit Connection(os::UniqueFd fd, std::chrono::milliseconds patience = kPatience);
  int fd() const { return fd_.get(); }
  // From any thread: whoever waits fails with agent.connection_lost.
  void Shutdown();

  // Blocks while the agent does not read, for no longer than the patience at a time.
  Result<void> Send(FrameType type, std::string_view payload);
  template <typename M>
  Result<void> SendMessage(FrameType type, const M& message) {
    return Send(type, Encode(message));
  }
  // Never blocks. False when nothing was taken, since an earlier frame is not sent yet.
  Result<bool> TrySend(FrameType type, std::string_view payload);
  Result<bool> Flush();  // whether all that TrySend took is sent

  // The next frame: its payload is good until the next call. Empty when `deadline` has passed or,
  // with `wants_to_send`, something can be sent.
  Result<std::optional<Frame>> Receive(const Deadline& deadline, bool wants_to_send = false);
  // Likewise; fails with agent.no_answer once calls in a row have waited in vain for the patience.
  Result<std::optional<Frame>> ReceiveWithin(std::optional<std::chrono::milliseconds> wait,
                                             bool wants_to_send = false);
  // A frame of this type, or the Status that a kFailed is. `more` is added to the patience.
  Result<Frame> Expect(FrameType type, std::chrono::milliseconds more = {});
  // Of either type; the patience begins anew with each call.
  Result<Frame> ExpectEither(FrameType one, FrameType other, std::chrono::milliseconds more = {});
  template <typename M>
  Result<M> ExpectMessage(FrameType type, std::chrono::milliseconds more = {}) {
    CAISSON_ASSIGN(const Frame frame, Expect(type, more));
    return As<M>(frame);
  }
  template <typename M>
  static Result<M> As(const Frame& frame) {
    auto message = Decode<M>(frame.payload);
    if (!message) return Malformed(frame.type);
    return *std::move(message);
  }
  static std::unexpected<Status> Malformed(FrameType type);
  static std::unexpected<Status> Unexpected(FrameType type);

  // For a stream that goes on without frames: the last one, of which nothing is read but itself,
  // and then the socket.
  Result<Frame> ExpectLast(FrameType type);
  Result<os::UniqueFd> Release();

 private:
  Result<bool> FillOnce(const Deadline& deadline, bool wants_to_send);
  Result<void> SendOnce(std::string_view& rest, int flags);
  std::unexpected<Status> NoAnswer() const;

  os::UniqueFd fd_;
  std::chrono::milliseconds patience_;
  std::chrono::milliseconds quiet_{0};  // waited in vain so far
  FrameReader reader_;
  bool leave_rest_ = false;  // what comes after the next frame stays in the socket
  std::mutex sending_;
  std::string unsent_;  // guarded by sending_
};

}  // namespace caisson::agent
