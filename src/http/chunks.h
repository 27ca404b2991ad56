// SPDX-License-Identifier: Apache-2.0
// Takes the chunked coding off a body, strictly: sizes of 1 to 15 hexadecimal digits, CRLF and
// nothing else at line ends. Extensions and trailers are bounded and dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace caisson::http {

class ChunkDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;  // bytes of `bytes` that are done with; 0: more are needed
    std::string_view data;     // a piece of `bytes`, at most `most` long
  };
  // One step forward. http.bad_request. Not to be called once done().
  Result<Step> Next(std::string_view bytes, std::size_t most);
  bool done() const { return state_ == State::kDone; }
  // What is left of a chunk that has begun, so that a reader knows what it may expect.
  std::uint64_t left_of_chunk() const { return left_; }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kDone };
  Result<Step> NextLine(std::string_view bytes);
  Result<void> ParseSize(std::string_view line);

  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  std::size_t trailer_bytes_ = 0;
};

}  // namespace caisson::http
