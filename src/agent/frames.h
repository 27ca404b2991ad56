// SPDX-License-Identifier: Apache-2.0
// How the host and a machine's agent cut a byte stream into frames. One connection is one
// operation: its first frame, from the host, says which, and closing it cancels the operation.
// docs/agent-protocol.md tells which frames follow which.
//
// A frame: payload length (u32, little-endian), type (u8), the payload. Nothing that a length
// announces is allocated before its bytes have come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace caisson::agent {

enum class FrameType : std::uint8_t {
  // Requests: the first frame of a connection.
  kPing = 1,
  kInfo = 2,
  kExec = 3,
  kPut = 4,
  kGet = 5,
  kStat = 6,
  kList = 7,
  kRemove = 8,
  kProcessStart = 9,
  kProcessList = 10,
  kProcessGet = 11,
  kProcessConnect = 12,
  kProcessInput = 13,
  kProcessCloseInput = 14,
  kProcessResize = 15,
  kProcessSignal = 16,
  kProcessWait = 17,
  kProcessTerminate = 18,
  kDial = 19,
  kWatch = 20,
  // Of virtual machines, from what stands beside them on the host (guest/computer.h).
  kRenew = 21,
  kQuiesce = 22,  // empty
  kThaw = 23,
  kGrowDisk = 24,
  kMountDisk = 25,
  // Of an agent that has made its socket itself (guest/entrance.h).
  kLetGo = 26,  // empty
  kIdentify = 27,
  // From the host, later.
  kStdin = 32,       // raw
  kStdinClose = 33,  // empty
  kResize = 34,
  kSignal = 35,
  kCommit = 36,  // empty: the upload is complete
  // Either way.
  kData = 48,  // raw: a piece of a file
  // From the agent.
  kOk = 64,      // empty: done, nothing to tell
  kFailed = 65,  // the operation ends with it
  kStarted = 66,
  kStdout = 67,  // raw
  kStderr = 68,  // raw
  kExit = 69,
  kHeartbeat = 70,  // empty
  kInfoAnswer = 71,
  kFile = 72,
  kEntry = 73,
  kEnd = 74,
  kProcess = 75,
  kEvent = 76,
  kInputTaken = 77,
  kSelf = 78,
  kActivity = 79,
};

inline constexpr std::size_t kFrameHeaderBytes = 5;
inline constexpr std::size_t kMaxDataBytes = 256u << 10;      // of a raw payload
inline constexpr std::size_t kMaxMessageBytes = 4096u << 10;  // of any other

// What a socket may hold on its way, as far as the system allows.
inline constexpr int kSocketBytes = 1 << 20;

bool IsFrameType(std::uint8_t type);
bool IsRaw(FrameType type);
std::size_t MaxPayload(FrameType type);

struct FrameHeader {
  char bytes[kFrameHeaderBytes];
};
// Requires that `payload_size` is within MaxPayload(type).
FrameHeader MakeFrameHeader(FrameType type, std::size_t payload_size);

struct Frame {
  FrameType type = FrameType::kPing;
  std::string_view payload;  // until the next call of Room or Next
};

// Holds what has come and is not yet read. Bytes are read straight into it.
class FrameReader {
 public:
  enum class State : std::uint8_t { kMore, kFrame, kBroken };

  // Space for the next bytes, at least `least`; Filled says how many of them came.
  std::span<char> Room(std::size_t least);
  void Filled(std::size_t count) { end_ += count; }

  // kBroken for an unknown type or a payload beyond MaxPayload, for good.
  State Next(Frame& frame);
  // How many bytes there are at least until Next has a frame or a broken one; 0: at once.
  std::size_t Missing() const;
  // Where just the header of a frame of this type, raw and not empty, has come and nothing after
  // it: takes it away and says how large the payload is, which the caller then reads by itself.
  std::optional<std::size_t> TakeHeader(FrameType type);
  // The bytes after the last frame, when the stream goes on without frames; forgets them.
  std::string TakeRest();
  bool empty() const { return at_ == end_; }

 private:
  std::string buffer_;
  std::size_t at_ = 0;   // what is before it has been handed out
  std::size_t end_ = 0;  // what is before it has come
};

}  // namespace caisson::agent
