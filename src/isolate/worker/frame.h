// SPDX-License-Identifier: Apache-2.0
// What a supervisor and a worker say to each other, as frames on a stream socket: a head of 16
// bytes (magic, type, length of the body), then the body. Integers are little-endian, texts have
// their length before them, the one large text of a frame is its rest. The decoders trust nothing:
// they bound every length by what is there and by a limit, and refuse what is not exactly a
// message. No I/O here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isolate/executor.h"
#include "isolate/runtime.h"
#include "jail/walls.h"

namespace caisson::isolate {

inline constexpr std::size_t kFrameHeadBytes = 16;
inline constexpr std::uint32_t kProtocolVersion = 1;
// No frame is larger; of requests, since replies have the narrower MaxReplyBytes.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxReadyBytes = 1u << 20;

enum class FrameType : std::uint32_t {
  kSource = 1,          // to the worker: a source, and the number that calls will use for it
  kForgetSources = 2,   // to the worker
  kCall = 3,            // to the worker
  kScriptJob = 4,       // to the worker; see isolate/worker/script_frame.h
  kCancelScript = 5,    // to the worker: end the run that is under way, if one is
  kReady = 16,          // from the worker, once
  kFailed = 17,         // from the worker instead of kReady
  kOutcome = 18,        // from the worker, one for each call, in order
  kStatus = 19,         // from the worker instead of kOutcome or kScriptEnd
  kScriptMessage = 20,  // from the worker, any number during a run
  kScriptEnd = 21,      // from the worker, one for each kScriptJob
};

// A frame whose large text is still where it was: send `head`, then `rest`.
struct OutgoingFrame {
  std::string head;
  std::string_view rest;
};

struct CallMessage {
  std::uint64_t call = 0;
  std::uint32_t source = 0;
  Limits limits;
  std::string_view payload;
};
struct ReadyMessage {
  std::vector<jail::WallReport> walls;  // name, stands and reason
  std::string describe;                 // JSON text
};
struct ReplyMessage {
  std::uint64_t call = 0;
  Result<EncodedOutcome> result;
};

std::string EncodeSource(std::uint32_t number, std::string_view source);
std::string EncodeForgetSources();
OutgoingFrame EncodeCall(const CallMessage& message);
std::string EncodeReady(const ReadyMessage& message);
std::string EncodeFailed(const Status& status);
// The rest points into `result`.
OutgoingFrame EncodeReply(std::uint64_t call, const Result<EncodedOutcome>& result);

// The most that an honest reply to a call with `limits` can have.
std::uint64_t MaxReplyBytes(const Limits& limits);

// Empty: the bytes are not such a message. Texts are made valid UTF-8.
struct SourceMessage {
  std::uint32_t number = 0;
  std::string_view text;
};
std::optional<SourceMessage> DecodeSource(std::string_view body);
std::optional<CallMessage> DecodeCall(std::string_view body);
std::optional<ReadyMessage> DecodeReady(std::string_view body);
std::optional<Status> DecodeFailed(std::string_view body);
std::optional<ReplyMessage> DecodeReply(FrameType type, std::string_view body,
                                        const Limits& limits);

// Collects bytes and cuts frames out of them.
class FrameReader {
 public:
  struct Frame {
    FrameType type;
    std::string_view body;  // until the next call of any method
  };
  enum class State : unsigned char { kFrame, kNeedMore, kViolation };

  // Room for the next bytes; tell Commit how many came. Grows with what has come, not with what a
  // head promises.
  struct Room {
    char* data;
    std::size_t size;
  };
  Room Prepare();
  void Commit(std::size_t count);

  // kViolation (no magic, or a body beyond `max_body`): nothing after it can be read.
  State Next(std::uint64_t max_body, Frame& frame);
  // Whether bytes wait that are no whole frame yet, or are one.
  bool empty() const { return begin_ == end_; }

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // [begin_, end_) holds what came and was not cut off yet
  std::size_t end_ = 0;
  std::uint64_t wanted_ = 0;  // bytes of the frame that is incomplete
};

// `text` with U+FFFD for each byte that is not part of valid UTF-8.
std::string ToValidUtf8(std::string_view text);

}  // namespace caisson::isolate
