// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/qmp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "errors/machine.h"
#include "os/fd_passing.h"

namespace caisson::machine::microvm {
namespace {

using namespace std::chrono_literals;

// A monitor that greets so and answers each command with nothing, and keeps what came.
class Monitor {
 public:
  explicit Monitor(const std::string& greeting) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_ = os::UniqueFd(ends[0]);
    served_ = std::thread([this, greeting, server = os::UniqueFd(ends[1])] {
      (void)!::write(server.get(), greeting.data(), greeting.size());
      for (;;) {
        std::array<char, 4096> text{};
        iovec piece{text.data(), text.size()};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        os::FdSpace<1> space;
        space.Await(message);
        const ssize_t n = ::recvmsg(server.get(), &message, MSG_CMSG_CLOEXEC);
        if (n <= 0) return;
        os::TakeFds(message, [this](int fd) { given_ = os::UniqueFd(fd); });
        commands_.emplace_back(text.data(), static_cast<std::size_t>(n));
        const std::string answer = "{\"return\": {}}\r\n";
        (void)!::write(server.get(), answer.data(), answer.size());
      }
    });
  }
  ~Monitor() { End(); }

  os::UniqueFd TakeClient() { return std::move(client_); }
  // Once its client has ended.
  void End() {
    client_.Reset();
    if (served_.joinable()) served_.join();
  }
  const std::vector<std::string>& commands() const { return commands_; }
  int given() const { return given_.get(); }

 private:
  os::UniqueFd client_, given_;
  std::vector<std::string> commands_;
  std::thread served_;
};

std::string Greeting(int major, int minor) {
  return "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 1, \"minor\": " + std::to_string(minor) +
         ", \"major\": " + std::to_string(major) +
         "}, \"package\": \"\"}, \"capabilities\": []}}\n";
}

class QmpTest : public testing::Test {
 protected:
  QmpTest() { std::ofstream(path_) << "saved"; }
  ~QmpTest() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "caisson-qmp-" + std::to_string(::getpid());
};

TEST_F(QmpTest, NamesTheFileWhereQemuTakesFiles) {
  for (const auto& [major, minor] : {std::pair(8, 2), std::pair(10, 0)}) {
    Monitor monitor(Greeting(major, minor));
    {
      Qmp qmp(monitor.TakeClient());
      ASSERT_TRUE(qmp.Begin(5s));
      EXPECT_EQ(qmp.MigrationUri(path_, O_RDONLY).value(), "file:" + path_);
    }
    monitor.End();
    EXPECT_EQ(monitor.commands().size(), 1u) << "qmp_capabilities alone";
  }
}

TEST_F(QmpTest, GivesTheFileItselfToAnOlderOne) {
  for (const auto& [major, minor] : {std::pair(7, 2), std::pair(8, 1)}) {
    Monitor monitor(Greeting(major, minor));
    {
      Qmp qmp(monitor.TakeClient());
      ASSERT_TRUE(qmp.Begin(5s));
      EXPECT_EQ(qmp.MigrationUri(path_, O_RDONLY).value(), "fd:state");
      const auto none = qmp.MigrationUri(path_ + ".none", O_RDONLY);
      ASSERT_FALSE(none);
      EXPECT_NE(none.error().message.find("ENOENT"), std::string::npos) << none.error().message;
    }
    monitor.End();
    ASSERT_EQ(monitor.commands().size(), 2u);
    EXPECT_NE(monitor.commands()[1].find("\"getfd\""), std::string::npos);
    struct stat given{}, wanted{};
    ASSERT_EQ(::fstat(monitor.given(), &given), 0);
    ASSERT_EQ(::stat(path_.c_str(), &wanted), 0);
    EXPECT_EQ(given.st_ino, wanted.st_ino);
  }
}

TEST_F(QmpTest, BeginsWithNothingThatDoesNotTellItsVersion) {
  for (const char* greeting : {"{}\n", "[]\n", "no JSON\n", "{\"QMP\": {\"version\": 7}}\n",
                               "{\"QMP\": {\"version\": {\"qemu\": []}}}\n"}) {
    Monitor monitor(greeting);
    Qmp qmp(monitor.TakeClient());
    const auto begun = qmp.Begin(5s);
    ASSERT_FALSE(begun) << greeting;
    EXPECT_EQ(begun.error().code, errors::kMachineVmFailed);
  }
}

}  // namespace
}  // namespace caisson::machine::microvm
