// SPDX-License-Identifier: Apache-2.0
#include "host/frame.h"

#include <cstdint>

namespace caisson::host {

std::string MakeFrame(std::string_view body) {
  std::string frame;
  frame.reserve(kHeadBytes + body.size());
  for (std::size_t i = 0; i < kHeadBytes; ++i) {
    frame += static_cast<char>(static_cast<std::uint32_t>(body.size()) >> (8 * i) & 0xff);
  }
  frame += body;
  return frame;
}

void FrameReader::Append(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_.append(bytes);
}

FrameReader::State FrameReader::Next(std::string_view& body) {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < kHeadBytes) return State::kMore;
  std::uint32_t length = 0;
  for (std::size_t i = kHeadBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(rest[i]);
  }
  if (length > max_body_) return State::kTooLarge;
  if (rest.size() - kHeadBytes < length) return State::kMore;
  body = rest.substr(kHeadBytes, length);
  at_ += kHeadBytes + length;
  return State::kFrame;
}

}  // namespace caisson::host
