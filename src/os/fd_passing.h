// SPDX-License-Identifier: Apache-2.0
// Descriptors that go along with a message on a Unix socket (SCM_RIGHTS, unix(7)). Allocates
// nothing and calls nothing of libc that a child between clone and exec may not.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace caisson::os {

// The control data of one message, for N descriptors at most. The message uses it: it must live as
// long.
template <std::size_t N>
class FdSpace {
 public:
  // For sendmsg. `fds` has at most N; they stay the caller's. Nothing when there are none.
  void Attach(msghdr& message, std::span<const int> fds) {
    if (fds.empty()) return;
    message.msg_control = space_;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }

  // For recvmsg, which sets MSG_CTRUNC when more came: the kernel closes those.
  void Await(msghdr& message) {
    message.msg_control = space_;
    message.msg_controllen = sizeof space_;
  }

 private:
  alignas(cmsghdr) char space_[CMSG_SPACE(sizeof(int) * N)] = {};
};

// After recvmsg: each descriptor that came, in order, to `take`, which owns it from then on.
template <typename Take>
void TakeFds(msghdr& message, Take take) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      take(fd);
    }
  }
}

}  // namespace caisson::os
