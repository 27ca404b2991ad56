// SPDX-License-Identifier: Apache-2.0
#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>

#include "os/fd.h"

namespace caisson::os {

void TellServiceManager(std::string_view state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  const std::string_view path(name == nullptr ? "" : name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (path.front() == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return;
  // Nobody may be there to hear it.
  static_cast<void>(::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), size));
}

}  // namespace caisson::os
