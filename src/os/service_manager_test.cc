// SPDX-License-Identifier: Apache-2.0
#include "os/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "os/fd.h"

namespace caisson::os {
namespace {

class Manager {
 public:
  explicit Manager(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (path[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }
  std::string Heard() {
    std::array<char, 256> bytes{};
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  UniqueFd fd_;
};

TEST(ServiceManager, hears_on_a_path) {
  const std::string path = testing::TempDir() + "notify-" + std::to_string(::getpid());
  Manager manager(path);
  TellServiceManager("READY=1");
  EXPECT_EQ(manager.Heard(), "READY=1");
  ::unlink(path.c_str());
}

TEST(ServiceManager, hears_on_an_abstract_name) {
  Manager manager("@caisson-notify-" + std::to_string(::getpid()));
  TellServiceManager("STOPPING=1");
  EXPECT_EQ(manager.Heard(), "STOPPING=1");
}

TEST(ServiceManager, may_be_missing) {
  ::unsetenv("NOTIFY_SOCKET");
  TellServiceManager("READY=1");
  ::setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  TellServiceManager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace caisson::os
