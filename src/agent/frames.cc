// SPDX-License-Identifier: Apache-2.0
#include "agent/frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace caisson::agent {
namespace {

// Kept for the next frames; a larger buffer is given back once it is empty.
constexpr std::size_t kKeptBytes = kMaxDataBytes + (64u << 10);

}  // namespace

bool IsFrameType(std::uint8_t type) {
  const auto within = [type](FrameType first, FrameType last) {
    return type >= static_cast<std::uint8_t>(first) && type <= static_cast<std::uint8_t>(last);
  };
  return within(FrameType::kPing, FrameType::kIdentify) ||
         within(FrameType::kStdin, FrameType::kCommit) ||
         type == static_cast<std::uint8_t>(FrameType::kData) ||
         within(FrameType::kOk, FrameType::kActivity);
}

bool IsRaw(FrameType type) {
  return type == FrameType::kStdin || type == FrameType::kData || type == FrameType::kStdout ||
         type == FrameType::kStderr;
}

std::size_t MaxPayload(FrameType type) { return IsRaw(type) ? kMaxDataBytes : kMaxMessageBytes; }

FrameHeader MakeFrameHeader(FrameType type, std::size_t payload_size) {
  FrameHeader header;
  for (int i = 0; i < 4; ++i) header.bytes[i] = static_cast<char>(payload_size >> (8 * i) & 0xff);
  header.bytes[4] = static_cast<char>(type);
  return header;
}

std::span<char> FrameReader::Room(std::size_t least) {
  if (at_ == end_) {
    at_ = end_ = 0;
    if (buffer_.size() > kKeptBytes) buffer_ = {};
  } else if (at_ > 0 && buffer_.size() - end_ < least) {
    std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
  }
  if (buffer_.size() - end_ < least) {
    buffer_.resize_and_overwrite(end_ + least, [](char*, std::size_t size) { return size; });
  }
  return {buffer_.data() + end_, buffer_.size() - end_};
}

namespace {

// What stands before the type.
std::size_t LengthOf(std::string_view header) {
  std::size_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(header[i]);
  return length;
}

}  // namespace

std::size_t FrameReader::Missing() const {
  const std::string_view rest(buffer_.data() + at_, end_ - at_);
  if (rest.size() < kFrameHeaderBytes) return kFrameHeaderBytes - rest.size();
  const std::size_t length = LengthOf(rest);
  const auto type = static_cast<std::uint8_t>(rest[4]);
  if (!IsFrameType(type) || length > MaxPayload(FrameType{type})) return 0;
  const std::size_t payload = rest.size() - kFrameHeaderBytes;
  return payload < length ? length - payload : 0;
}

FrameReader::State FrameReader::Next(Frame& frame) {
  const std::string_view rest(buffer_.data() + at_, end_ - at_);
  if (rest.size() < kFrameHeaderBytes) return State::kMore;
  const std::size_t length = LengthOf(rest);
  const auto type = static_cast<std::uint8_t>(rest[4]);
  if (!IsFrameType(type) || length > MaxPayload(FrameType{type})) return State::kBroken;
  if (rest.size() - kFrameHeaderBytes < length) return State::kMore;
  frame = {FrameType{type}, rest.substr(kFrameHeaderBytes, length)};
  at_ += kFrameHeaderBytes + length;
  return State::kFrame;
}

std::optional<std::size_t> FrameReader::TakeHeader(FrameType type) {
  const std::string_view rest(buffer_.data() + at_, end_ - at_);
  if (rest.size() != kFrameHeaderBytes ||
      static_cast<std::uint8_t>(rest[4]) != std::to_underlying(type)) {
    return std::nullopt;
  }
  const std::size_t length = LengthOf(rest);
  if (length == 0 || length > MaxPayload(type)) return std::nullopt;
  at_ = end_ = 0;
  return length;
}

std::string FrameReader::TakeRest() {
  std::string rest(buffer_.data() + at_, end_ - at_);
  buffer_ = {};
  at_ = end_ = 0;
  return rest;
}

}  // namespace caisson::agent
