// SPDX-License-Identifier: Apache-2.0
// Cuts the bytes of a call's channel into frames. The guest wrote them: nothing about them is
// trusted but their length, and that only up to a bound.
//
// A frame: payload length (u32, little-endian), kind (u8), final (u8, 0 or 1), two zero bytes, the
// payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::isolate {

inline constexpr std::size_t kFrameHeaderBytes = 8;
// Kinds beyond MessageKind: how the script ended, as its harness saw it; and, in a container,
// before anything of the script runs: that the walls stand, or why they do not.
inline constexpr std::uint8_t kReportFrame = 16;
inline constexpr std::uint8_t kEnteredFrame = 17;
inline constexpr std::uint8_t kFailedFrame = 18;

struct ChannelFrame {
  std::uint8_t kind = 0;
  bool final = false;
  std::string_view payload;  // until the next call of Append or Next
};

class ChannelReader {
 public:
  enum class State : std::uint8_t { kMore, kFrame, kTooLong, kBroken };

  void Append(std::string_view bytes);
  // kTooLong as soon as a header announces more than `max_payload`; kBroken when the bytes are no
  // frame. Both are for good.
  State Next(std::uint64_t max_payload, ChannelFrame& frame);
  // Whether bytes of an unfinished frame are left.
  bool pending() const { return at_ < buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t at_ = 0;  // what is before it has been handed out
};

}  // namespace caisson::isolate
