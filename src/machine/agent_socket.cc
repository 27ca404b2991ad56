// SPDX-License-Identifier: Apache-2.0
#include "machine/agent_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

constexpr const char* kSocketName = "agent.sock";
constexpr int kBacklog = 128;

class SocketAddress {
 public:
  static Result<SocketAddress> In(const std::string& directory) {
    SocketAddress address;
    CAISSON_ASSIGN(address.directory_, os::OpenFile(directory, O_PATH | O_DIRECTORY));
    address.name_.sun_family = AF_UNIX;
    const std::string path =
        fmt::format("/proc/self/fd/{}/{}", address.directory_.get(), kSocketName);
    path.copy(address.name_.sun_path, sizeof address.name_.sun_path - 1);
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  static constexpr socklen_t size() { return sizeof(sockaddr_un); }

 private:
  os::UniqueFd directory_;
  sockaddr_un name_{};
};

}  // namespace

Result<os::UniqueFd> ListenForAgent(const std::string& directory) {
  CAISSON_ASSIGN(const SocketAddress address, SocketAddress::In(directory));
  (void)::unlink((directory + "/" + kSocketName).c_str());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::bind(socket.get(), address.get(), SocketAddress::size()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return os::SyscallError("listen for a machine's agent");
  }
  return socket;
}

Result<os::UniqueFd> ConnectToAgent(const std::string& directory) {
  CAISSON_ASSIGN(const SocketAddress address, SocketAddress::In(directory));
  // Not blocking: an agent that accepts nothing must not hold this process.
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::connect(socket.get(), address.get(), SocketAddress::size()) != 0) {
    return Fail(errors::kMachineAgentLost,
                "the machine's agent takes no connection: " + os::ErrnoText(errno));
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return os::SyscallError("connect to a machine's agent");
  }
  return socket;
}

}  // namespace caisson::machine
