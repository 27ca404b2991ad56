// SPDX-License-Identifier: Apache-2.0
// Writing and reading the bodies of frames (isolate/worker/frame.h). Only for the files that encode
// and decode messages.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"
#include "isolate/worker/frame.h"

namespace caisson::isolate {

inline constexpr std::uint32_t kFrameMagic = 0x31575343;  // "CSW1"

// What a message may have beyond its large texts.
inline constexpr std::size_t kMaxMessageBytes = 256u << 10;
inline constexpr std::size_t kMaxNameBytes = 4u << 10;
inline constexpr std::size_t kMaxFrames = 4096;

class FrameWriter {
 public:
  explicit FrameWriter(FrameType type) {
    U32(kFrameMagic);
    U32(static_cast<std::uint32_t>(type));
    U64(0);
  }
  void U8(std::uint8_t value) { text_.push_back(static_cast<char>(value)); }
  void U32(std::uint32_t value) { Put(value, 4); }
  void U64(std::uint64_t value) { Put(value, 8); }
  void Text(std::string_view text, std::size_t limit) {
    text = text.substr(0, limit);
    U32(static_cast<std::uint32_t>(text.size()));
    text_.append(text);
  }
  void Append(std::string_view text) { text_.append(text); }
  // Sets the length, which includes a rest that is sent after this.
  std::string Take(std::size_t rest = 0) {
    const std::uint64_t length = text_.size() - kFrameHeadBytes + rest;
    for (unsigned i = 0; i < 8; ++i) text_[8 + i] = static_cast<char>(length >> (8 * i));
    return std::move(text_);
  }

 private:
  void Put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i)));
  }

  std::string text_;
};

// Reads from a body; after the first thing that is not there, everything is empty and ok() false.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : left_(body) {}
  std::uint8_t U8() { return static_cast<std::uint8_t>(Number(1)); }
  std::uint32_t U32() { return static_cast<std::uint32_t>(Number(4)); }
  std::uint64_t U64() { return Number(8); }
  std::string_view Text(std::uint64_t limit) {
    const std::uint32_t size = U32();
    if (size > limit) ok_ = false;
    return Bytes(size);
  }
  std::string_view Rest() { return Bytes(left_.size()); }
  void Require(bool condition) { ok_ = ok_ && condition; }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && left_.empty(); }

 private:
  std::string_view Bytes(std::size_t count) {
    if (!ok_ || count > left_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  std::uint64_t Number(unsigned bytes) {
    std::uint64_t value = 0;
    const std::string_view text = Bytes(bytes);
    for (unsigned i = 0; i < text.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    }
    return value;
  }

  std::string_view left_;
  bool ok_ = true;
};

void PutStatus(FrameWriter& writer, const Status& status);
Status GetStatus(BodyReader& reader);

}  // namespace caisson::isolate
