// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::os {

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<FdPair> MakePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return SyscallError("pipe2");
  return FdPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<FdPair> MakeSocketPair(std::size_t buffer) {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return SyscallError("socketpair");
  }
  FdPair pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
  const int size = static_cast<int>(buffer);
  for (int fd : fds) {  // capped silently by net.core.wmem_max: a hint
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  return pair;
}

Result<UniqueFd> MakeEventFd() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return SyscallError("eventfd");
  return fd;
}

Result<UniqueFd> OpenFile(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) return SyscallError("open " + path);
  return fd;
}

Result<std::string> ReadSmallFile(const std::string& path, std::size_t limit) {
  CAISSON_ASSIGN(UniqueFd fd, OpenFile(path, O_RDONLY));
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < limit) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SyscallError("read " + path);
    if (n == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(n));
  }
  if (text.size() > limit) text.resize(limit);
  return text;
}

Result<void> WriteSmallFile(const std::string& path, std::string_view text) {
  CAISSON_ASSIGN(UniqueFd fd, OpenFile(path, O_WRONLY));
  ssize_t n = 0;
  do {
    n = ::write(fd.get(), text.data(), text.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) return SyscallError("write to " + path);
  if (static_cast<std::size_t>(n) != text.size()) return SyscallError("write to " + path, EIO);
  return {};
}

}  // namespace caisson::os
