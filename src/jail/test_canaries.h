// SPDX-License-Identifier: Apache-2.0
// Things outside of a sandbox that an attack would touch: a file, a process, a listener, an
// abstract socket, a secret in the environment. For tests (tests/corpora/attacks/README.md).
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "os/fd.h"
#include "os/user_namespace.h"

namespace caisson::jail {

class Canaries {
 public:
  Canaries() {
    std::string pattern = "/var/tmp/caisson-canary-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::permissions(directory_, std::filesystem::perms(0777));
    std::ofstream(file()) << kText;
    ::setenv("HOST_CANARY_SECRET", kText, 1);
    tcp_ = Listen(SOCK_STREAM, 0);
    udp_ = Listen(SOCK_DGRAM, port());
    bindable_ = PortThatIsFree();
    ListenAbstract();
    pid_ = ::fork();
    if (pid_ == 0) Sleep();
  }
  ~Canaries() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(directory_);
    ::unsetenv("HOST_CANARY_SECRET");
  }
  Canaries(const Canaries&) = delete;
  Canaries& operator=(const Canaries&) = delete;

  static constexpr const char* kText = "HOST-CANARY-5f2c91";
  std::string file() const { return directory_ + "/canary"; }
  pid_t pid() const { return pid_; }
  int bindable() const { return bindable_; }
  const std::string& abstract() const { return abstract_; }
  int port() const { return PortOf(tcp_.get()); }

  // The first document of an attack.
  std::string Document() const {
    return "{\"canary_path\":\"" + file() + "\",\"canary_text\":\"" + kText +
           "\",\"canary_port\":" + std::to_string(port()) + ",\"canary_abstract\":\"" + abstract_ +
           "\",\"canary_pid\":" + std::to_string(pid_) +
           ",\"bind_port\":" + std::to_string(bindable_) + ",\"artifacts\":\"/tmp\"}";
  }

  void ExpectUntouched() const {
    std::ifstream stream(file());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), kText);
    const auto entries = std::filesystem::directory_iterator(directory_);
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
    EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << "the canary process has ended";
    char byte = 0;
    EXPECT_LT(::accept4(tcp_.get(), nullptr, nullptr, SOCK_NONBLOCK), 0) << "TCP came out";
    EXPECT_LT(::recv(udp_.get(), &byte, 1, MSG_DONTWAIT), 0) << "UDP came out";
    EXPECT_LT(::accept4(unix_.get(), nullptr, nullptr, SOCK_NONBLOCK), 0) << "a local connection";
    EXPECT_FALSE(CanConnect(bindable_)) << "a port was opened";
  }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static os::UniqueFd Listen(int type, int port) {
    os::UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(fd.get(), 8), 0);
    }
    return fd;
  }
  static int PortOf(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  static int PortThatIsFree() { return PortOf(Listen(SOCK_STREAM, 0).get()); }
  static bool CanConnect(int port) {
    const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(port);
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  void ListenAbstract() {
    abstract_ = directory_.substr(directory_.rfind('/') + 1);  // pids repeat, in namespaces
    unix_ = os::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, abstract_.data(), abstract_.size());
    const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + abstract_.size());
    EXPECT_EQ(::bind(unix_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(unix_.get(), 8), 0);
  }
  // Of the user that scripts are outside, so that it is this user's namespace that protects it.
  [[noreturn]] static void Sleep() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::geteuid() == 0 && ::setuid(os::kNobody) != 0) ::_exit(1);
    for (;;) ::pause();
  }

  std::string directory_;
  os::UniqueFd tcp_, udp_, unix_;
  std::string abstract_;
  int bindable_ = 0;
  pid_t pid_ = -1;
};

}  // namespace caisson::jail
