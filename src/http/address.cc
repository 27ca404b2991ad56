// SPDX-License-Identifier: Apache-2.0
#include "http/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "errors/http.h"
#include "os/syscall_error.h"

namespace caisson::http {
namespace {

constexpr int kBacklog = 4096;

std::unexpected<Status> CannotListen(const std::string& address, std::string_view why) {
  return Fail(errors::kHttpListen, fmt::format("cannot listen on {}: {}", address, why));
}

bool AnswersAt(const sockaddr_un& name) {
  const os::UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return true;
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 ||
         errno != ECONNREFUSED;
}

Result<Listening> ListenUnix(const std::string& address, unsigned mode) {
  const std::string path = address.substr(kUnixScheme.size());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return CannotListen(
        address, fmt::format("a path of a socket has 1 to {} bytes", sizeof(name.sun_path) - 1));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  struct stat before{};
  if (lstat(path.c_str(), &before) == 0 && S_ISSOCK(before.st_mode) && !AnswersAt(name)) {
    unlink(path.c_str());
  }
  Listening listening{
      os::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), 0, {}};
  // The mode is set between bind and listen, so that nobody connects before it holds.
  if (!listening.socket.valid() ||
      bind(listening.socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotListen(address, os::ErrnoText(errno));
  }
  listening.unix_path = path;
  if (chmod(path.c_str(), mode) != 0 || listen(listening.socket.get(), kBacklog) != 0) {
    const std::string why = os::ErrnoText(errno);
    unlink(path.c_str());
    return CannotListen(address, why);
  }
  return listening;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> Resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return CannotListen(address, "it is no host:port");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), address.c_str() + colon + 1,
                                &hints, &found);
  if (error != 0) return CannotListen(address, gai_strerror(error));
  return AddressList(found, freeaddrinfo);
}

std::uint16_t PortOf(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  }
  if (name.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port);
  }
  return 0;
}

}  // namespace

Result<Listening> Listen(const std::string& address, unsigned unix_mode) {
  if (address.starts_with(kUnixScheme)) return ListenUnix(address, unix_mode);
  CAISSON_ASSIGN(const AddressList found, Resolve(address));
  os::UniqueFd listener(
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const int on = 1;
  if (!listener.valid() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    return CannotListen(address, os::ErrnoText(errno));
  }
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return CannotListen(address, os::ErrnoText(errno));
  }
  return Listening{std::move(listener), PortOf(name), {}};
}

std::string PeerText(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, PortOf(peer));
  }
  if (peer.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, text, sizeof(text));
    return fmt::format("[{}]:{}", text, PortOf(peer));
  }
  return "unix";
}

}  // namespace caisson::http
