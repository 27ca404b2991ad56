// SPDX-License-Identifier: Apache-2.0
// Lines from a descriptor, none of them longer than a limit: a longer one is skipped without being
// held. For one thread. Owns no descriptor; makes none non-blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::block {

class LineReader {
 public:
  enum class Event : std::uint8_t {
    kLine,
    kTooLong,  // the line was skipped
    kEnd,      // of the input; also when it cannot be read any more
    kStopped,
  };

  // Becomes kStopped once `stop_fd` is readable.
  LineReader(int fd, int stop_fd, std::size_t max_bytes)
      : fd_(fd), stop_fd_(stop_fd), max_bytes_(max_bytes), buffer_(64u << 10) {}

  // kLine: `line` is good until the next call; without its line end.
  Event Next(std::string_view& line);

 private:
  enum class Filled : std::uint8_t { kData, kEnd, kStopped };
  Filled Fill();
  // Moves what the buffer holds up to a line end into line_; true when that came.
  bool TakeFromBuffer();

  int fd_;
  int stop_fd_;
  std::size_t max_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string line_;
  bool too_long_ = false;
  bool started_ = false;  // some byte of the current line was read
};

}  // namespace caisson::block
