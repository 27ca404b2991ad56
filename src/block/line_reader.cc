// SPDX-License-Identifier: Apache-2.0
#include "block/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace caisson::block {
namespace {

constexpr std::size_t kKeptCapacity = 1u << 20;

}  // namespace

LineReader::Event LineReader::Next(std::string_view& line) {
  if (line_.capacity() > kKeptCapacity) line_ = {};  // one long line is no reason to stay large
  line_.clear();
  too_long_ = false;
  started_ = false;
  while (!TakeFromBuffer()) {
    const Filled filled = Fill();
    if (filled == Filled::kStopped) return Event::kStopped;
    if (filled == Filled::kData) continue;
    if (!started_) return Event::kEnd;
    break;  // the last line has no line end
  }
  if (too_long_) return Event::kTooLong;
  line = line_;
  return Event::kLine;
}

bool LineReader::TakeFromBuffer() {
  if (begin_ == end_) return false;
  started_ = true;
  const char* first = buffer_.data() + begin_;
  const auto* stop = static_cast<const char*>(std::memchr(first, '\n', end_ - begin_));
  const std::size_t count =
      stop == nullptr ? end_ - begin_ : static_cast<std::size_t>(stop - first);
  begin_ += count + (stop == nullptr ? 0 : 1);
  if (!too_long_ && line_.size() + count > max_bytes_) {
    too_long_ = true;
    line_ = {};
  }
  if (!too_long_) line_.append(first, count);
  return stop != nullptr;
}

LineReader::Filled LineReader::Fill() {
  while (true) {
    std::array<pollfd, 2> watched = {{{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return Filled::kEnd;
    }
    if (watched[1].revents != 0) return Filled::kStopped;
    if (watched[0].revents == 0) continue;
    const ssize_t count = read(fd_, buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Filled::kEnd;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return Filled::kData;
  }
}

}  // namespace caisson::block
