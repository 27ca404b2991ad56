// SPDX-License-Identifier: Apache-2.0
// Dialled ports, the endpoint by which the machine speaks of itself, and whoever watches.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;

struct Listener {
  os::UniqueFd fd;
  std::uint16_t port = 0;
};

// Of this process; the agent under test shares its network.
Listener ListenOn(const char* address) {
  Listener listener{os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in name{};
  name.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &name.sin_addr);
  socklen_t size = sizeof name;
  EXPECT_EQ(::bind(listener.fd.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  EXPECT_EQ(::listen(listener.fd.get(), 16), 0);
  ::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
  listener.port = ntohs(name.sin_port);
  return listener;
}

// Gives up after ten seconds.
os::UniqueFd Accept(const Listener& listener) {
  pollfd ready{listener.fd.get(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) return {};
  return os::UniqueFd(::accept(listener.fd.get(), nullptr, nullptr));
}

os::UniqueFd ConnectTo(std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  return fd;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t count = 0; (count = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

class StreamsTest : public testing::Test {
 protected:
  AgentUnderTest agent_;
};

TEST_F(StreamsTest, carries_bytes_both_ways_and_half_closes) {
  const Listener listener = ListenOn("127.0.0.1");
  std::jthread server([&] {
    const os::UniqueFd peer = Accept(listener);
    const std::string text = ReadAll(peer.get());  // to the half-close
    WriteAll(peer.get(), "heard " + std::to_string(text.size()) + " and " + text.substr(0, 5));
  });
  auto stream = Dial(agent_.Connect(), {listener.port});
  ASSERT_TRUE(stream) << stream.error().message;
  WriteAll(stream->get(), "hello" + std::string(10'000'000, 'x'));
  ASSERT_EQ(::shutdown(stream->get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(stream->get()), "heard 10000005 and hello");
}

TEST_F(StreamsTest, loses_nothing_of_a_server_that_speaks_first) {
  const Listener listener = ListenOn("127.0.0.1");
  for (int i = 0; i < 100; ++i) {
    std::jthread server([&] { WriteAll(Accept(listener).get(), "SSH-2.0-greeting\r\n"); });
    auto stream = Dial(agent_.Connect(), {listener.port});
    ASSERT_TRUE(stream) << stream.error().message;
    ASSERT_EQ(ReadAll(stream->get()), "SSH-2.0-greeting\r\n");
  }
}

TEST_F(StreamsTest, lets_the_machine_half_close_first) {
  const Listener listener = ListenOn("127.0.0.1");
  std::string heard;
  std::jthread server([&] {
    const os::UniqueFd peer = Accept(listener);
    WriteAll(peer.get(), "first");
    ::shutdown(peer.get(), SHUT_WR);
    heard = ReadAll(peer.get());
  });
  auto stream = Dial(agent_.Connect(), {listener.port});
  ASSERT_TRUE(stream);
  EXPECT_EQ(ReadAll(stream->get()), "first");
  WriteAll(stream->get(), "still open this way");
  stream->Reset();
  server.join();
  EXPECT_EQ(heard, "still open this way");
}

TEST_F(StreamsTest, delivers_what_was_written_before_the_host_closed) {
  const Listener listener = ListenOn("127.0.0.1");
  std::string heard;
  std::jthread server([&] {
    const os::UniqueFd peer = Accept(listener);
    std::this_thread::sleep_for(100ms);
    heard = ReadAll(peer.get());
  });
  {
    auto stream = Dial(agent_.Connect(), {listener.port});
    ASSERT_TRUE(stream);
    WriteAll(stream->get(), std::string(3'000'000, 'x'));
  }
  server.join();
  EXPECT_EQ(heard.size(), 3'000'000U);
}

TEST_F(StreamsTest, tells_the_machine_when_the_host_goes_away) {
  const Listener listener = ListenOn("127.0.0.1");
  auto stream = Dial(agent_.Connect(), {listener.port});
  ASSERT_TRUE(stream);
  const os::UniqueFd peer = Accept(listener);
  stream->Reset();
  EXPECT_EQ(ReadAll(peer.get()), "");
}

TEST_F(StreamsTest, says_that_nothing_listens) {
  std::uint16_t port = 0;
  {
    const Listener listener = ListenOn("127.0.0.1");
    port = listener.port;
  }
  for (const DialTo to : {DialTo::kLoopback, DialTo::kPublic}) {
    const auto stream = Dial(agent_.Connect(), {port, to});
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().code, errors::kAgentNotListening);
  }
}

TEST_F(StreamsTest, reaches_publicly_only_what_listens_beyond_the_loopback) {
  const Listener loopback = ListenOn("127.0.0.1");
  const Listener every = ListenOn("0.0.0.0");
  EXPECT_TRUE(Dial(agent_.Connect(), {loopback.port, DialTo::kLoopback}));
  EXPECT_FALSE(Dial(agent_.Connect(), {loopback.port, DialTo::kPublic}));
  EXPECT_TRUE(Dial(agent_.Connect(), {every.port, DialTo::kLoopback}));
  EXPECT_TRUE(Dial(agent_.Connect(), {every.port, DialTo::kPublic}));
}

TEST_F(StreamsTest, stalls_one_way_without_the_other) {
  const Listener listener = ListenOn("127.0.0.1");
  auto stream = Dial(agent_.Connect(), {listener.port});
  ASSERT_TRUE(stream);
  os::UniqueFd peer = Accept(listener);
  std::jthread flood([&] { WriteAll(stream->get(), std::string(30'000'000, 'x')); });
  std::this_thread::sleep_for(200ms);  // nobody reads it
  WriteAll(peer.get(), "the other way");
  char buffer[64];
  pollfd ready{stream->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 5000), 1);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(::read(stream->get(), buffer, 64))),
            "the other way");
  peer.Reset();  // and whoever still writes is told
}

class SelfTest : public StreamsTest {
 protected:
  std::string Ask(const std::string& request) {
    const os::UniqueFd fd = ConnectTo(Info(agent_.Connect())->self_port);
    WriteAll(fd.get(), request);
    return ReadAll(fd.get());
  }
  std::string Post(const std::string& target) {
    return Ask("POST " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
  }
  static std::optional<SelfRequest> NextSelf(Watch& watch) {
    for (;;) {
      const auto event = watch.Next(2s);
      if (!event || (!event->self && !event->activity)) return std::nullopt;
      if (event->self) return event->self;
    }
  }
};

TEST_F(SelfTest, passes_on_what_the_machine_asks_for_itself) {
  auto watch = Watch::Start(agent_.Connect());
  ASSERT_TRUE(watch);
  EXPECT_TRUE(Post("/self/pause?reason=all%20done+here").starts_with("HTTP/1.1 202 Accepted\r\n"));
  EXPECT_EQ(NextSelf(*watch), (SelfRequest{SelfAction::kPause, "all done here"}));
  EXPECT_TRUE(Post("/self/delete").starts_with("HTTP/1.1 202 "));
  EXPECT_EQ(NextSelf(*watch), (SelfRequest{SelfAction::kDelete, ""}));
}

TEST_F(SelfTest, keeps_requests_for_whoever_watches_next) {
  Post("/self/pause?reason=x&more=y");
  auto watch = Watch::Start(agent_.Connect());
  ASSERT_TRUE(watch);
  EXPECT_EQ(NextSelf(*watch), (SelfRequest{SelfAction::kPause, "x"}));
  auto second = Watch::Start(agent_.Connect());
  EXPECT_EQ(NextSelf(*second), std::nullopt);
}

TEST_F(SelfTest, refuses_other_methods_paths_and_what_is_no_http) {
  EXPECT_TRUE(Ask("GET /self/pause HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(Post("/self/").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(Post("/self/pause/now").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(Ask("\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask("POST /self/pause\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask("POST " + std::string(20'000, '/')).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(Post("/self/pause?reason=%zz%4").starts_with("HTTP/1.1 202 "));
}

TEST_F(SelfTest, stays_there_for_others_while_some_hold_their_connections) {
  const std::uint16_t port = Info(agent_.Connect())->self_port;
  std::vector<os::UniqueFd> held;
  for (int i = 0; i < 100; ++i) held.push_back(ConnectTo(port));  // beyond 32: closed at once
  EXPECT_TRUE(Ping(agent_.Connect()));
  held.clear();
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(Post("/self/pause").starts_with("HTTP/1.1 202 "));
}

class WatchTest : public StreamsTest {
 protected:
  // Until it is as `wanted` says, for at most five seconds.
  template <typename Wanted>
  static std::optional<Activity> Until(Watch& watch, Wanted wanted) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (std::chrono::steady_clock::now() < end) {
      const auto event = watch.Next(1s);
      if (event && event->activity && wanted(*event->activity)) return event->activity;
    }
    return std::nullopt;
  }
};

TEST_F(WatchTest, tells_of_commands_streams_and_processes_as_they_come_and_go) {
  auto watch = Watch::Start(agent_.Connect());
  ASSERT_TRUE(watch);
  EXPECT_TRUE(Until(*watch, [](const Activity& a) { return a == Activity{}; }));
  const Listener listener = ListenOn("127.0.0.1");
  {
    auto exec = Exec::Start(agent_.Connect(), {.command = Shell("sleep 600")});
    EXPECT_TRUE(Until(*watch, [](const Activity& a) { return a.commands == 1; }));
    auto stream = Dial(agent_.Connect(), {listener.port});
    EXPECT_TRUE(Until(*watch, [](const Activity& a) { return a.streams == 1; }));
  }
  EXPECT_TRUE(Until(*watch, [](const Activity& a) { return a.commands + a.streams == 0; }));
  const auto process = StartProcess(agent_.Connect(), Shell("sleep 3; echo some output"));
  EXPECT_TRUE(Until(*watch, [](const Activity& a) { return a.processes == 1; }));
  EXPECT_TRUE(
      Until(*watch, [](const Activity& a) { return a.output_bytes == 12 && a.processes == 0; }));
}

TEST_F(WatchTest, tells_at_most_once_a_second) {
  auto watch = Watch::Start(agent_.Connect());
  ASSERT_TRUE(watch);
  auto exec =
      Exec::Start(agent_.Connect(), {.command = Shell("while :; do echo x; done >/dev/null "
                                                      "& while sleep 0.01; do echo; done")});
  int told = 0;
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) {
    const auto event = watch->Next(100ms);
    told += event && event->activity ? 1 : 0;
  }
  EXPECT_GE(told, 2);
  EXPECT_LE(told, 5);
}

}  // namespace
}  // namespace caisson::agent
