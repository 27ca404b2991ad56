// SPDX-License-Identifier: Apache-2.0
// A Unix socket that a service listens on, with mode 0600. Its file goes with it.
#pragma once

#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::cli {

class ListeningSocket {
 public:
  // A file that nobody listens on any more is replaced; any other one is left alone. Call it before
  // there are other threads: the mode comes from the umask. Fails with block.socket.
  static Result<ListeningSocket> Open(const std::string& path);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_.get(); }
  // A connection, when one waits. Fails with block.socket.
  Result<os::UniqueFd> Accept() const;

 private:
  ListeningSocket(os::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  os::UniqueFd fd_;
  std::string path_;
};

}  // namespace caisson::cli
