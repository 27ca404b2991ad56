// SPDX-License-Identifier: Apache-2.0
#include "jail/canaries.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::jail {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Result<os::UniqueFd> Listen(int type, int port) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  if (!fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (type == SOCK_STREAM && ::listen(fd.get(), 8) != 0)) {
    return os::SyscallError("listen on the loopback");
  }
  return fd;
}

int PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool CanConnect(int port) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Result<os::UniqueFd> ListenAbstract(const std::string& name) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), 8) != 0) {
    return os::SyscallError("listen on an abstract socket");
  }
  return fd;
}

// Of the user that scripts are outside, so that it is this user's namespace that protects it.
[[noreturn]] void Sleep() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::geteuid() == 0 && ::setuid(os::kNobody) != 0) ::_exit(1);
  for (;;) ::pause();
}

}  // namespace

Result<std::unique_ptr<Canaries>> Canaries::Set() {
  std::unique_ptr<Canaries> set(new Canaries());
  std::string pattern = "/var/tmp/caisson-canary-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return os::SyscallError("make " + pattern);
  set->directory_ = pattern;
  std::filesystem::permissions(set->directory_, std::filesystem::perms(0777));
  std::ofstream(set->file()) << kText;
  ::setenv("HOST_CANARY_SECRET", kText, 1);
  CAISSON_ASSIGN(set->tcp_, Listen(SOCK_STREAM, 0));
  CAISSON_ASSIGN(set->udp_, Listen(SOCK_DGRAM, PortOf(set->tcp_.get())));
  {
    // Closed before the process below could keep it.
    CAISSON_ASSIGN(const os::UniqueFd free, Listen(SOCK_STREAM, 0));
    set->bindable_ = PortOf(free.get());
  }
  set->abstract_ = pattern.substr(pattern.rfind('/') + 1);  // pids repeat, in namespaces
  CAISSON_ASSIGN(set->unix_, ListenAbstract(set->abstract_));
  set->pid_ = ::fork();
  if (set->pid_ == 0) Sleep();
  if (set->pid_ < 0) return os::SyscallError("fork");
  return set;
}

Canaries::~Canaries() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
  ::unsetenv("HOST_CANARY_SECRET");
}

std::string Canaries::Document() const {
  return "{\"canary_path\":\"" + file() + "\",\"canary_text\":\"" + kText +
         "\",\"canary_port\":" + std::to_string(PortOf(tcp_.get())) + ",\"canary_abstract\":\"" +
         abstract_ + "\",\"canary_pid\":" + std::to_string(pid_) +
         ",\"bind_port\":" + std::to_string(bindable_) + ",\"artifacts\":\"/tmp\"}";
}

std::vector<std::string> Canaries::Harm() const {
  std::vector<std::string> harm;
  std::ifstream stream(file());
  if (std::string(std::istreambuf_iterator<char>(stream), {}) != kText) {
    harm.emplace_back("the canary file was changed");
  }
  std::error_code error;
  const auto entries = std::filesystem::directory_iterator(directory_, error);
  if (error || std::distance(begin(entries), end(entries)) != 1) {
    harm.emplace_back("something appeared beside the canary file");
  }
  if (::waitpid(pid_, nullptr, WNOHANG) != 0) harm.emplace_back("the canary process has ended");
  char byte = 0;
  if (::accept4(tcp_.get(), nullptr, nullptr, SOCK_NONBLOCK) >= 0) {
    harm.emplace_back("a TCP connection came out");
  }
  if (::recv(udp_.get(), &byte, 1, MSG_DONTWAIT) >= 0) harm.emplace_back("a UDP packet came out");
  if (::accept4(unix_.get(), nullptr, nullptr, SOCK_NONBLOCK) >= 0) {
    harm.emplace_back("a connection to an abstract socket came out");
  }
  if (CanConnect(bindable_)) harm.emplace_back("a port was opened");
  return harm;
}

}  // namespace caisson::jail
