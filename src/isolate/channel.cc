// SPDX-License-Identifier: Apache-2.0
#include "isolate/channel.h"

#include "isolate/script.h"

namespace caisson::isolate {
namespace {

std::uint32_t LittleEndian32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

bool IsKind(std::uint8_t kind) {
  return (kind >= static_cast<std::uint8_t>(MessageKind::kDone) &&
          kind <= static_cast<std::uint8_t>(MessageKind::kStdout)) ||
         (kind >= kReportFrame && kind <= kFailedFrame);
}

}  // namespace

void ChannelReader::Append(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_.append(bytes);
}

ChannelReader::State ChannelReader::Next(std::uint64_t max_payload, ChannelFrame& frame) {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < kFrameHeaderBytes) return State::kMore;
  const std::uint32_t length = LittleEndian32(rest);
  const auto kind = static_cast<std::uint8_t>(rest[4]);
  const auto final = static_cast<unsigned char>(rest[5]);
  if (!IsKind(kind) || final > 1 || rest[6] != 0 || rest[7] != 0) return State::kBroken;
  if (length > max_payload) return State::kTooLong;
  if (rest.size() - kFrameHeaderBytes < length) return State::kMore;
  frame = {kind, final == 1, rest.substr(kFrameHeaderBytes, length)};
  at_ += kFrameHeaderBytes + length;
  return State::kFrame;
}

}  // namespace caisson::isolate
