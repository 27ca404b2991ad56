// SPDX-License-Identifier: Apache-2.0
// File descriptors: an owner, pipes and socketpairs (close-on-exec all of them), small whole-file
// reads and writes for procfs and cgroupfs. Not a file abstraction.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace caisson::os {

// Owns a descriptor; closes it. Move only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct FdPair {
  UniqueFd first;   // pipes: the end to read from
  UniqueFd second;  // pipes: the end to write to
};

Result<FdPair> MakePipe();
// AF_UNIX, SOCK_STREAM; buffers as large as the system allows without privilege, up to `buffer`.
Result<FdPair> MakeSocketPair(std::size_t buffer);
Result<UniqueFd> MakeEventFd();
Result<UniqueFd> OpenFile(const std::string& path, int flags);

// The whole content of a small file (procfs, cgroupfs), at most `limit` bytes of it.
Result<std::string> ReadSmallFile(const std::string& path, std::size_t limit = 1u << 20);
// One write(2), as procfs and cgroupfs want it.
Result<void> WriteSmallFile(const std::string& path, std::string_view text);

}  // namespace caisson::os
