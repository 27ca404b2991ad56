// SPDX-License-Identifier: Apache-2.0
// Lines of many threads to one descriptor. A thread of its own writes; little waits in memory: who
// has more to say than fits stands still until the reader has read. Thread-safe. Owns no
// descriptor; makes none non-blocking. SIGPIPE must be ignored.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/status.h"
#include "block/frames.h"
#include "os/fd.h"

namespace caisson::block {

class LineOutput {
 public:
  using Clock = std::chrono::steady_clock;

  // How long a writer is willing to stand still before its line has begun.
  struct Patience {
    std::stop_token stop;
    std::optional<Clock::time_point> deadline;
  };
  enum class Written { kYes, kGone, kStopped, kTooLate };

  // `on_gone` is called once, from the writing thread, when the reader has gone.
  static Result<std::unique_ptr<LineOutput>> Create(int fd, std::function<void()> on_gone);
  ~LineOutput();  // Close with no grace
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  // Adds a line; its line end is added here. A line that has begun is finished, whatever comes.
  Written Write(const Line& line, const Patience& patience);
  // Adds a line without ever standing still. For lines of which there are few.
  void Post(std::string line);

  // Writes what waits and ends; a reader that takes nothing at all for `grace` loses the rest.
  void Close(std::chrono::milliseconds grace);
  // After Close: the errno that kept lines from being written; 0: none.
  int error() const { return error_; }

 private:
  LineOutput(int fd, os::UniqueFd wake, std::function<void()> on_gone);

  Written WaitForTurn(std::unique_lock<std::mutex>& lock, const Patience& patience);
  void Append(std::unique_lock<std::mutex>& lock, std::string_view text, const Patience& patience);
  void WriteAll();
  bool WriteChunk(std::string_view chunk);
  // Bytes that went out; 0: the reader has gone or has lost its grace, and error_ says which.
  std::size_t WriteSome(std::string_view text);
  void ReaderHasGone();

  const int fd_;
  const os::UniqueFd wake_;  // readable once closing_
  const std::function<void()> on_gone_;
  int error_ = 0;         // of the writing thread
  std::size_t step_ = 0;  // bytes that a write(2) after a poll(2) takes without blocking

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string queue_;
  std::size_t in_flight_ = 0;          // taken from queue_, not yet written
  bool line_open_ = false;             // someone is in the middle of a line
  std::deque<std::string> postponed_;  // behind it
  bool closing_ = false;
  bool gone_ = false;
  std::chrono::milliseconds grace_{0};
  std::thread writer_;
};

}  // namespace caisson::block
