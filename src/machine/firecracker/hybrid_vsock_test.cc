// SPDX-License-Identifier: Apache-2.0
// The handshake by which a stream to the agent is had, with one who answers oddly.
#include "machine/firecracker/hybrid_vsock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace caisson::machine::firecracker {
namespace {

using std::chrono::milliseconds;

class HybridVsock : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/caisson-hybrid-XXXXXX";
    directory_ = ::mkdtemp(name);
    path_ = directory_ + "/v.sock";
    Listen();
  }
  void TearDown() override {
    if (dialer_ > 0) {
      ::kill(dialer_, SIGKILL);
      ::waitpid(dialer_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }
  void Listen() {
    listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path_.copy(name.sun_path, sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
  }
  // In a process of its own, since a loop has no end: says what comes through the stream.
  void Dial() {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    said_.Reset(ends[0]);
    dialer_ = ::fork();
    if (dialer_ == 0) {
      agent::guest::Loop loop;
      os::UniqueFd stream;
      std::unique_ptr<agent::guest::EventSource> source;
      HybridDialer dialer(
          loop, path_, 52,
          [&](os::UniqueFd fd) {
            (void)!::write(ends[1], "[stream]", 8);
            source = std::make_unique<agent::guest::EventSource>(
                loop, std::move(fd), [&](std::uint32_t) {
                  std::array<char, 64> bytes{};
                  const ssize_t n = ::read(source->fd(), bytes.data(), bytes.size());
                  if (n <= 0) ::_exit(0);
                  (void)!::write(ends[1], bytes.data(), static_cast<std::size_t>(n));
                });
            source->Want(EPOLLIN);
          },
          {.answer = milliseconds(60), .pause = milliseconds(5)});
      dialer.Dial();
      loop.Run();
    }
    ::close(ends[1]);
  }
  os::UniqueFd Accept() const {
    pollfd event{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&event, 1, 2'000), 1) << "nobody dials";
    return os::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // What the dialer says first.
  static std::string Command(const os::UniqueFd& stream) {
    std::array<char, 64> bytes{};
    const ssize_t n = ::read(stream.get(), bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }
  static void Say(const os::UniqueFd& stream, const std::string& text) {
    ASSERT_EQ(::send(stream.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  std::string Said(const std::string& until) const {
    std::string text;
    pollfd event{said_.get(), POLLIN, 0};
    while (text.find(until) == std::string::npos && ::poll(&event, 1, 2'000) == 1) {
      std::array<char, 64> bytes{};
      const ssize_t n = ::read(said_.get(), bytes.data(), bytes.size());
      if (n <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  std::string directory_, path_;
  os::UniqueFd listener_, said_;
  pid_t dialer_ = 0;
};

TEST_F(HybridVsock, AStreamBeginsRightAfterItsOk) {
  Dial();
  const os::UniqueFd stream = Accept();
  EXPECT_EQ(Command(stream), "CONNECT 52\n");
  Say(stream, "OK 1073741824\nOK this is the guest's\n");
  EXPECT_EQ(Said("guest's\n"), "[stream]OK this is the guest's\n");
}

TEST_F(HybridVsock, AnAnswerInPiecesIsOne) {
  Dial();
  const os::UniqueFd stream = Accept();
  Command(stream);
  for (const char* piece : {"O", "K 10", "73", "\n", "x"}) {
    Say(stream, piece);
    std::this_thread::sleep_for(milliseconds(3));
  }
  EXPECT_EQ(Said("x"), "[stream]x");
}

TEST_F(HybridVsock, WhereNobodyListensYetItDialsAgain) {
  listener_.Reset();
  std::filesystem::remove(path_);
  Dial();
  std::this_thread::sleep_for(milliseconds(20));
  Listen();
  for (int refused = 0; refused < 3; ++refused) EXPECT_EQ(Command(Accept()), "CONNECT 52\n");
  const os::UniqueFd stream = Accept();
  Command(stream);
  Say(stream, "OK 1\nx");
  EXPECT_EQ(Said("x"), "[stream]x");
}

TEST_F(HybridVsock, OneThatIsSilentOrSaysSomethingElseIsLeft) {
  Dial();
  const os::UniqueFd silent = Accept();
  Command(silent);
  for (const char* words : {"NO\n", "OK \n", "OK 1x\n", "OK 11111111111111111111111111111111"}) {
    const os::UniqueFd odd = Accept();
    EXPECT_EQ(Command(odd), "CONNECT 52\n") << words;
    Say(odd, words);
  }
  const os::UniqueFd stream = Accept();
  Command(stream);
  Say(stream, "OK 1\nx");
  EXPECT_EQ(Said("x"), "[stream]x");
}

}  // namespace
}  // namespace caisson::machine::firecracker
