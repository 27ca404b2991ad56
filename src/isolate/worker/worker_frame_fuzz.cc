// SPDX-License-Identifier: Apache-2.0
// Any bytes from a worker or a supervisor, cut at any place: the reader refuses them or cuts frames
// within the bound, the decoders refuse or give what an honest sender could have sent.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "isolate/worker/frame.h"

namespace caisson::isolate {
namespace {

constexpr std::uint64_t kMaxBody = 1u << 16;

void Require(bool condition) {
  if (!condition) std::abort();
}

Limits SomeLimits() {
  Limits limits;
  limits.output_bytes = 4096;
  limits.stdout_bytes = 256;
  return limits;
}

void CheckReply(FrameType type, std::string_view body) {
  const Limits limits = SomeLimits();
  const auto reply = DecodeReply(type, body, limits);
  if (!reply) return;
  if (reply->result) {
    const EncodedOutcome& encoded = *reply->result;
    Require(encoded.value_text.size() <= limits.output_bytes);
    Require(encoded.outcome.ok() || encoded.value_text.empty());
    Require(encoded.outcome.fault != Fault::kKilled);
    for (const std::string* text :
         {&encoded.outcome.message, &encoded.outcome.error_type, &encoded.outcome.stdout_text}) {
      Require(ToValidUtf8(*text) == *text);
    }
  } else {
    Require(!reply->result.error().code.name.empty());
  }
  // What was decoded is a message that can be sent again.
  const OutgoingFrame frame = EncodeReply(reply->call, reply->result);
  Require(frame.head.size() >= kFrameHeadBytes);
}

void CheckFrame(const FrameReader::Frame& frame) {
  Require(frame.body.size() <= kMaxBody);
  CheckReply(frame.type, frame.body);
  CheckReply(FrameType::kOutcome, frame.body);
  CheckReply(FrameType::kStatus, frame.body);
  (void)DecodeReady(frame.body);
  (void)DecodeFailed(frame.body);
  if (const auto source = DecodeSource(frame.body)) {
    Require(EncodeSource(source->number, source->text).substr(kFrameHeadBytes) == frame.body);
  }
  if (const auto call = DecodeCall(frame.body)) {
    const OutgoingFrame again = EncodeCall(*call);
    Require(again.head.substr(kFrameHeadBytes) + std::string(again.rest) == frame.body);
  }
}

void ReadInPieces(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  FrameReader::Frame frame{};
  for (;;) {
    const FrameReader::State state = reader.Next(kMaxBody, frame);
    if (state == FrameReader::State::kViolation) return;
    if (state == FrameReader::State::kFrame) {
      CheckFrame(frame);
      continue;
    }
    if (bytes.empty()) return;
    const FrameReader::Room room = reader.Prepare();
    Require(room.size > 0);
    const std::size_t count = std::min({piece, room.size, bytes.size()});
    std::memcpy(room.data, bytes.data(), count);
    reader.Commit(count);
    bytes.remove_prefix(count);
  }
}

}  // namespace
}  // namespace caisson::isolate

// The first byte says how the rest comes: as it is, or as the body of a frame, and in what pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::isolate;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{1} << (data[0] & 15);
  if ((data[0] & 16) != 0) {
    ReadInPieces(rest, piece);
    return 0;
  }
  std::string framed = EncodeForgetSources();
  const auto length = static_cast<std::uint32_t>(rest.size());
  std::memcpy(framed.data() + 8, &length, sizeof length);
  ReadInPieces(framed.append(rest), piece);
  return 0;
}
