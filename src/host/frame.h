// SPDX-License-Identifier: Apache-2.0
// Cuts what a node host sends into frames, and makes frames for it. A frame is the length of its
// body (u32, little-endian) and the body, a JSON text. No I/O, no JSON here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caisson::host {

inline constexpr std::size_t kHeadBytes = 4;
// No frame is larger, whatever else is asked for.
inline constexpr std::size_t kMaxFrameBytes = 512u << 20;

// Requires a body of at most kMaxFrameBytes.
std::string MakeFrame(std::string_view body);

class FrameReader {
 public:
  enum class State : unsigned char { kMore, kFrame, kTooLarge };

  explicit FrameReader(std::size_t max_body) : max_body_(max_body) {}
  // Memory grows with what has come, not with what a head promises.
  void Append(std::string_view bytes);
  // `body` is valid until the next call. kTooLarge as soon as a head announces more than the bound,
  // and for good.
  State Next(std::string_view& body);

 private:
  const std::size_t max_body_;
  std::string buffer_;
  std::size_t at_ = 0;  // what is before it has been handed out
};

}  // namespace caisson::host
