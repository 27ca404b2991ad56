// SPDX-License-Identifier: Apache-2.0
#include "cli/block_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "errors/block.h"

namespace caisson::cli {
namespace {

constexpr int kBacklog = 64;

std::unexpected<Status> Refuse(const std::string& path, const std::string& why) {
  return Fail(errors::kBlockSocket, "the socket " + path + " cannot be made: " + why);
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path ||
      path.find('\0') != std::string::npos) {
    return Refuse(path, "its name must have from 1 to " +
                            std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

os::UniqueFd MakeSocket() { return os::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

int Connect(const sockaddr_un& address) {
  const os::UniqueFd probe = MakeSocket();
  if (!probe.valid()) return errno;
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
             ? 0
             : errno;
}

// 0, or the errno of bind(2).
int Bind(int fd, const sockaddr_un& address) {
  const mode_t before = umask(0177);
  const int error =
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  umask(before);
  return error;
}

bool IsSocket(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

Result<ListeningSocket> ListeningSocket::Open(const std::string& path) {
  CAISSON_ASSIGN(const sockaddr_un address, AddressOf(path));
  os::UniqueFd fd = MakeSocket();
  if (!fd.valid()) return Refuse(path, std::strerror(errno));
  int error = Bind(fd.get(), address);
  if (error == EADDRINUSE) {
    if (!IsSocket(path)) return Refuse(path, "there is a file of that name that is no socket");
    const int answer = Connect(address);
    if (answer != ECONNREFUSED) return Refuse(path, "another process listens on it");
    unlink(path.c_str());
    error = Bind(fd.get(), address);
  }
  if (error != 0) return Refuse(path, std::strerror(error));
  ListeningSocket listening(std::move(fd), path);
  if (listen(listening.fd(), kBacklog) != 0) return Refuse(path, std::strerror(errno));
  return listening;
}

ListeningSocket::~ListeningSocket() {
  if (fd_.valid()) unlink(path_.c_str());
}

Result<os::UniqueFd> ListeningSocket::Accept() const {
  while (true) {
    os::UniqueFd connection(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) return connection;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    return Refuse(path_, std::string("no connection can be taken: ") + std::strerror(errno));
  }
}

}  // namespace caisson::cli
