// SPDX-License-Identifier: Apache-2.0
#include "machine/helper/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "os/fd.h"

namespace caisson::machine::helper {
namespace {

class HelperServer : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "caisson-server-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    auto server = Server::Listen({}, path(), ::geteuid());
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    runner_ =
        std::jthread([this](const std::stop_token& stop) { EXPECT_TRUE(server_->Run(stop)); });
  }
  void TearDown() override {
    runner_ = {};
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::string path() const { return directory_ + "/socket"; }

  // Allocates nothing: it is called after fork, too.
  os::UniqueFd Connect() const {
    os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0)
      socket.Reset();
    return socket;
  }
  // Whether a request has an answer, which it has though there is no driver.
  static bool IsServed(int socket) {
    static constexpr std::string_view kFrame(
        "\x24\0\0\0{\"driver\":\"none\",\"operation\":\"list\"}", 4 + 0x24);
    if (::send(socket, kFrame.data(), kFrame.size(), MSG_NOSIGNAL) != ssize_t{kFrame.size()})
      return false;
    pollfd event{socket, POLLIN, 0};
    std::array<char, 4> length{};
    return ::poll(&event, 1, 30'000) == 1 && ::recv(socket, length.data(), 4, 0) == 4;
  }

  sockaddr_un address_{};
  std::string directory_;
  std::unique_ptr<Server> server_;
  std::jthread runner_;
};

TEST_F(HelperServer, OneProcessLeavesRoomForAnother) {
  address_.sun_family = AF_UNIX;
  path().copy(address_.sun_path, sizeof address_.sun_path - 1);
  std::vector<os::UniqueFd> taken;
  for (std::size_t i = 0; i < Server::kMaxOfProcess; ++i) {
    taken.push_back(Connect());
    ASSERT_TRUE(IsServed(taken.back().get())) << i;
  }
  EXPECT_FALSE(IsServed(Connect().get()));
  const pid_t other = ::fork();
  if (other == 0) ::_exit(IsServed(Connect().get()) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // What ends makes room.
  taken.pop_back();
  bool served = false;
  for (int i = 0; i < 1000 && !served; ++i) {
    ::usleep(5'000);
    served = IsServed(Connect().get());
  }
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace caisson::machine::helper
