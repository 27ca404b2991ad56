// SPDX-License-Identifier: Apache-2.0
#include "http/chunks.h"

#include <algorithm>

#include "errors/http.h"
#include "http/headers.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostLine = 1024;
constexpr std::size_t kMostTrailers = 8192;

std::unexpected<Status> Bad(const char* message) { return Fail(errors::kHttpBadRequest, message); }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<ChunkDecoder::Step> ChunkDecoder::Next(std::string_view bytes, std::size_t most) {
  if (state_ == State::kData) {
    const std::size_t size = std::min<std::uint64_t>({left_, bytes.size(), most});
    left_ -= size;
    if (left_ == 0) state_ = State::kDataEnd;
    return Step{size, bytes.substr(0, size)};
  }
  if (state_ != State::kDataEnd) return NextLine(bytes);
  if (!std::string_view("\r\n").starts_with(bytes.substr(0, 2))) {
    return Bad("a chunk of the body does not end where its size says");
  }
  if (bytes.size() < 2) return Step{};
  state_ = State::kSize;
  return Step{2, {}};
}

Result<ChunkDecoder::Step> ChunkDecoder::NextLine(std::string_view bytes) {
  const std::size_t end = bytes.find_first_of("\r\n");
  if (std::min(end, bytes.size()) > kMostLine)
    return Bad("a chunk of the body has a line too long");
  if (end == std::string_view::npos || (bytes[end] == '\r' && end + 1 == bytes.size())) {
    return Step{};
  }
  if (bytes.substr(end, 2) != "\r\n") return Bad("a line between chunks does not end with CRLF");
  const std::string_view line = bytes.substr(0, end);
  if (state_ == State::kSize) {
    CAISSON_TRY(ParseSize(line));
    state_ = left_ == 0 ? State::kTrailer : State::kData;
    return Step{end + 2, {}};
  }
  trailer_bytes_ += end + 2;
  if (trailer_bytes_ > kMostTrailers) return Bad("the trailers of the body are too large");
  if (line.empty()) {
    state_ = State::kDone;
  } else if (!IsToken(line.substr(0, line.find(':'))) || line.find(':') == std::string_view::npos) {
    return Bad("a trailer of the body is malformed");
  }
  return Step{end + 2, {}};
}

Result<void> ChunkDecoder::ParseSize(std::string_view line) {
  std::size_t digits = 0;
  left_ = 0;
  while (digits < line.size() && HexDigit(line[digits]) >= 0) {
    if (digits == 15) return Bad("the size of a chunk is too large");
    left_ = left_ * 16 + static_cast<std::uint64_t>(HexDigit(line[digits++]));
  }
  const std::string_view rest = line.substr(digits);
  if (digits == 0 || (!rest.empty() && (rest.front() != ';' || !IsFieldValue(rest)))) {
    return Bad("the size of a chunk is malformed");
  }
  return {};
}

}  // namespace caisson::http
