// SPDX-License-Identifier: Apache-2.0
#include "machine/agent_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

constexpr const char* kSocketName = "agent.sock";
constexpr int kBacklog = 128;

std::unexpected<Status> AgentLost() {
  return Fail(errors::kMachineAgentLost,
              "the machine's agent takes no connection: " + os::ErrnoText(errno));
}

// Invalid, with errno, where it is not to be had below this root without links.
os::UniqueFd OpenBelow(int root, const std::string& path, std::uint64_t flags,
                       std::uint64_t mode = 0) {
  open_how how{};
  how.flags = flags | O_NOFOLLOW | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return os::UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

class SocketAddress {
 public:
  static Result<SocketAddress> In(const std::string& directory) {
    SocketAddress address;
    CAISSON_ASSIGN(address.opened_, os::OpenFile(directory, O_PATH | O_DIRECTORY));
    address.Name(fmt::format("/proc/self/fd/{}/{}", address.opened_.get(), kSocketName));
    return address;
  }
  static Result<SocketAddress> Below(int root, const std::string& path) {
    SocketAddress address;
    address.opened_ = OpenBelow(root, path, O_PATH);
    if (!address.opened_.valid()) return AgentLost();
    address.Name(fmt::format("/proc/self/fd/{}", address.opened_.get()));
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  static constexpr socklen_t size() { return sizeof(sockaddr_un); }

 private:
  void Name(const std::string& path) {
    name_.sun_family = AF_UNIX;
    path.copy(name_.sun_path, sizeof name_.sun_path - 1);
  }

  os::UniqueFd opened_;
  sockaddr_un name_{};
};

Result<os::UniqueFd> ConnectAt(const SocketAddress& address) {
  // Not blocking: an agent that accepts nothing must not hold this process.
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::connect(socket.get(), address.get(), SocketAddress::size()) != 0) return AgentLost();
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return os::SyscallError("connect to a machine's agent");
  }
  return socket;
}

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
  return ConnectAt(address);
}

Result<os::UniqueFd> ConnectToAgentIn(int root, const std::string& path) {
  CAISSON_ASSIGN(const SocketAddress address, SocketAddress::Below(root, path));
  return ConnectAt(address);
}

Result<void> WakeAgentIn(int root, const std::string& path) {
  const os::UniqueFd file = OpenBelow(root, path + ".wake", O_WRONLY | O_CREAT | O_NONBLOCK, 0600);
  if (!file.valid()) return os::SyscallError("wake a machine's agent");
  return {};
}

}  // namespace caisson::machine
