// SPDX-License-Identifier: Apache-2.0
// Bytes through both ends of a stream of channels, faster than a virtual machine takes them.
#include "agent/channel_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

namespace caisson::agent {
namespace {

std::pair<os::UniqueFd, os::UniqueFd> Pair(int flags) {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends.data()), 0);
  return {os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

// What comes, to the end; "..." after what has stopped to come.
std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 65536> piece{};
  for (pollfd event{fd, POLLIN, 0}; ::poll(&event, 1, 5'000) == 1;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n <= 0) return all;
    all.append(piece.data(), static_cast<std::size_t>(n));
  }
  return all + "...";
}

// Of the machine: tells how much came when no more does.
void Count(os::UniqueFd socket) {
  ::fcntl(socket.get(), F_SETFL, 0);
  const std::string told = std::to_string(ReadAll(socket.get()).size());
  (void)!::write(socket.get(), told.data(), told.size());
}

// Both ends, in a process that ends when it is killed: a loop has no end.
[[noreturn]] void Serve(os::UniqueFd connection) {
  guest::Loop loop;
  auto [host_end, agent_end] = Pair(SOCK_NONBLOCK);
  ChannelPump agent(
      loop, Channels::Side::kAgent, std::move(agent_end),
      {.on_greeting = {},
       .on_open = [](os::UniqueFd socket) { std::thread(Count, std::move(socket)).detach(); },
       .on_broken = {}},
      StreamKind::kConnection);
  ChannelPump* itself = nullptr;
  ChannelPump host(loop, Channels::Side::kHost, std::move(host_end),
                   {.on_greeting = [&](std::uint64_t) { itself->Add(std::move(connection)); },
                    .on_open = {},
                    .on_broken = {}},
                   StreamKind::kConnection);
  itself = &host;
  host.Greet(1);
  loop.Run();
}

TEST(ChannelPump, CarriesWhatComesInLargePiecesToItsEnd) {
  for (const std::size_t size :
       {1uz, 32'767uz, 32'768uz, 32'769uz, 65'536uz, 300'000uz, 5'000'000uz}) {
    auto [ours, theirs] = Pair(0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ours = os::UniqueFd();
      ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
      Serve(std::move(theirs));
    }
    theirs = os::UniqueFd();
    std::thread writer([size, fd = ours.get()] {
      const std::string bytes(size, 'x');
      EXPECT_EQ(::send(fd, bytes.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
      ::shutdown(fd, SHUT_WR);
    });
    EXPECT_EQ(ReadAll(ours.get()), std::to_string(size));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    writer.join();
  }
}

}  // namespace
}  // namespace caisson::agent
