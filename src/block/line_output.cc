// SPDX-License-Identifier: Apache-2.0
#include "block/line_output.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

namespace caisson::block {
namespace {

constexpr std::size_t kCapacity = 256u << 10;
// A pipe that poll(2) calls writable takes PIPE_BUF bytes at once; a file takes anything.
constexpr std::size_t kPipeStep = 4096;
constexpr std::size_t kStep = 64u << 10;

std::size_t StepOf(int fd) {
  struct stat info{};
  const bool is_file = fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
  return is_file ? kStep : kPipeStep;
}

// A socket is asked not to block; other descriptors are written to no more than they can take.
ssize_t WriteOnce(int fd, std::string_view text) {
  const ssize_t count = send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count >= 0 || errno != ENOTSOCK) return count;
  return write(fd, text.data(), text.size());
}

}  // namespace

Result<std::unique_ptr<LineOutput>> LineOutput::Create(int fd, std::function<void()> on_gone) {
  CAISSON_ASSIGN(os::UniqueFd wake, os::MakeEventFd());
  std::unique_ptr<LineOutput> output(new LineOutput(fd, std::move(wake), std::move(on_gone)));
  return output;
}

LineOutput::LineOutput(int fd, os::UniqueFd wake, std::function<void()> on_gone)
    : fd_(fd), wake_(std::move(wake)), on_gone_(std::move(on_gone)), step_(StepOf(fd)) {
  writer_ = std::thread([this] { WriteAll(); });
}

LineOutput::~LineOutput() { Close(std::chrono::milliseconds(0)); }

LineOutput::Written LineOutput::Write(const Line& line, const Patience& patience) {
  std::unique_lock lock(mutex_);
  const Written turn = WaitForTurn(lock, patience);
  if (turn != Written::kYes) return turn;
  line_open_ = true;
  for (const std::string_view text : {std::string_view(line.head), line.body, line.tail}) {
    Append(lock, text, patience);
  }
  queue_ += '\n';
  for (const std::string& later : postponed_) queue_.append(later).append("\n");
  postponed_.clear();
  line_open_ = false;
  changed_.notify_all();
  return gone_ ? Written::kGone : Written::kYes;
}

LineOutput::Written LineOutput::WaitForTurn(std::unique_lock<std::mutex>& lock,
                                            const Patience& patience) {
  const auto ready = [this] {
    return gone_ || closing_ || (!line_open_ && queue_.size() + in_flight_ < kCapacity);
  };
  if (patience.deadline) {
    changed_.wait_until(lock, patience.stop, *patience.deadline, ready);
  } else {
    changed_.wait(lock, patience.stop, ready);
  }
  if (gone_ || closing_) return Written::kGone;
  if (ready()) return Written::kYes;
  return patience.stop.stop_requested() ? Written::kStopped : Written::kTooLate;
}

// Part by part, as the reader makes room. When patience ends the rest is taken into memory at once:
// a line that has begun must end, and its text may be gone afterwards.
void LineOutput::Append(std::unique_lock<std::mutex>& lock, std::string_view text,
                        const Patience& patience) {
  const auto room = [this] { return gone_ || closing_ || queue_.size() + in_flight_ < kCapacity; };
  while (!text.empty() && !gone_) {
    const bool in_time = patience.deadline
                             ? changed_.wait_until(lock, patience.stop, *patience.deadline, room)
                             : changed_.wait(lock, patience.stop, room);
    const std::size_t used = queue_.size() + in_flight_;
    const std::size_t count = in_time && !closing_ && used < kCapacity
                                  ? std::min(text.size(), kCapacity - used)
                                  : text.size();
    queue_.append(text.substr(0, count));
    text.remove_prefix(count);
    changed_.notify_all();
  }
}

void LineOutput::Post(std::string line) {
  const std::lock_guard lock(mutex_);
  if (gone_) return;
  if (line_open_) {
    postponed_.push_back(std::move(line));
  } else {
    queue_.append(line).append("\n");
    changed_.notify_all();
  }
}

void LineOutput::Close(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    grace_ = grace;
    changed_.notify_all();
  }
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  writer_.join();
}

void LineOutput::WriteAll() {
  std::string chunk;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      in_flight_ = 0;
      changed_.notify_all();
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      chunk.clear();
      chunk.swap(queue_);
      in_flight_ = chunk.size();
    }
    if (WriteChunk(chunk)) continue;
    ReaderHasGone();
    return;
  }
}

bool LineOutput::WriteChunk(std::string_view chunk) {
  while (!chunk.empty()) {
    const std::size_t count = WriteSome(chunk.substr(0, step_));
    if (count == 0) return false;
    chunk.remove_prefix(count);
  }
  return true;
}

std::size_t LineOutput::WriteSome(std::string_view text) {
  bool closing = false;
  while (true) {
    // Once closing, the wake descriptor stays readable and is no longer watched.
    std::array<pollfd, 2> watched = {{{fd_, POLLOUT, 0}, {closing ? -1 : wake_.get(), POLLIN, 0}}};
    int timeout = -1;
    if (closing) {
      const std::lock_guard lock(mutex_);
      timeout = static_cast<int>(grace_.count());
    }
    const int ready = poll(watched.data(), watched.size(), timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      error_ = ready == 0 ? ETIMEDOUT : errno;
      return 0;
    }
    if (watched[0].revents == 0) {
      closing = true;
      continue;
    }
    const ssize_t count = WriteOnce(fd_, text);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    error_ = count < 0 ? errno : EIO;
    return 0;
  }
}

void LineOutput::ReaderHasGone() {
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    in_flight_ = 0;
    queue_.clear();
    postponed_.clear();
    changed_.notify_all();
  }
  if (on_gone_) on_gone_();
}

}  // namespace caisson::block
