// SPDX-License-Identifier: Apache-2.0
// The entrance of a virtual machine whose host connects to it. Connections by vsock need a
// hypervisor or the kernel's loopback transport, so that the stream itself is tried over a Unix
// socket, and of vsock only that the agent listens.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
// After sys/socket.h, whose types it needs.
#include <linux/vm_sockets.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "agent/agent_under_test.h"
#include "agent/channels.h"
#include "agent/frames.h"
#include "agent/messages.h"

namespace caisson::agent {
namespace {

// The host's side of a stream, one step after the other.
class Host final : private ChannelEvents {
 public:
  explicit Host(os::UniqueFd stream) : stream_(std::move(stream)) {}

  void Greet(std::uint64_t number) {
    channels_.Greet(number);
    Until([this] { return channels_.greeted(); });
  }
  bool greeted() const { return channels_.greeted(); }
  // What the agent answers, to the end.
  std::string Ask(FrameType type, const std::string& payload) {
    const std::uint32_t channel = channels_.Open();
    const FrameHeader header = MakeFrameHeader(type, payload.size());
    channels_.Send(channel, {header.bytes, kFrameHeaderBytes});
    channels_.Send(channel, payload);
    answer_.clear();
    ended_ = false;
    Until([this] { return ended_; });
    return answer_;
  }
  // Whether the agent has left the stream.
  bool IsOver() {
    Until([] { return false; });
    return over_;
  }

 private:
  template <typename Done>
  void Until(Done done) {
    std::string& out = channels_.out();
    const std::size_t size = out.size();
    if (size > 0) {
      EXPECT_EQ(::send(stream_.get(), out.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    }
    out.clear();
    std::array<char, 4096> piece{};
    pollfd event{stream_.get(), POLLIN, 0};
    while (!done() && ::poll(&event, 1, 5'000) == 1) {
      const ssize_t n = ::read(stream_.get(), piece.data(), piece.size());
      over_ = n <= 0;
      if (over_ || !channels_.Receive({piece.data(), static_cast<std::size_t>(n)})) return;
    }
  }
  void OnGreeting(std::uint64_t) override {}
  void OnOpen(std::uint32_t) override {}
  void OnData(std::uint32_t, std::string_view bytes) override { answer_ += bytes; }
  void OnRoom(std::uint32_t) override {}
  void OnEnd(std::uint32_t) override { ended_ = true; }
  void OnClose(std::uint32_t) override { ended_ = true; }

  os::UniqueFd stream_;
  Channels channels_{Channels::Side::kHost, *this};
  std::string answer_;
  bool ended_ = false;
  bool over_ = false;
};

TEST(HostStreams, CarryChannelsAndAMachineThatIsNotRenewedServesNobody) {
  const AgentUnderTest agent({"--stream-fd", "3"});
  Host host(agent.Connect());
  host.Greet(7);
  ASSERT_TRUE(host.greeted());
  const std::string answer = host.Ask(FrameType::kPing, "");
  FrameReader reader;
  const auto room = reader.Room(answer.size());
  answer.copy(room.data(), answer.size());
  reader.Filled(answer.size());
  Frame frame;
  ASSERT_EQ(reader.Next(frame), FrameReader::State::kFrame);
  ASSERT_EQ(frame.type, FrameType::kFailed);
  const auto failure = Decode<Failure>(frame.payload);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->message.find("not renewed"), std::string::npos) << failure->message;
}

TEST(HostStreams, AHostThatComesAnewHasLostTheOneBefore) {
  const AgentUnderTest agent({"--stream-fd", "3"});
  Host first(agent.Connect());
  first.Greet(1);
  ASSERT_TRUE(first.greeted());
  Host second(agent.Connect());
  second.Greet(2);
  EXPECT_TRUE(second.greeted());
  EXPECT_TRUE(first.IsOver());
  EXPECT_NE(second.Ask(FrameType::kPing, ""), "") << "the end of the first is not its own";
}

TEST(HostStreams, AStreamThatIsNoneIsLeftAndTheNextOneIsHeard) {
  const AgentUnderTest agent({"--stream-fd", "3"});
  {
    const os::UniqueFd closed = agent.Connect();
  }
  Host odd(agent.Connect());
  odd.Greet(1);
  ASSERT_TRUE(odd.greeted());
  const os::UniqueFd gone = agent.Connect();
  EXPECT_EQ(::send(gone.get(), "hello", 5, MSG_NOSIGNAL), 5);
  ::shutdown(gone.get(), SHUT_WR);
  Host host(agent.Connect());
  host.Greet(2);
  EXPECT_TRUE(host.greeted());
}

TEST(HostStreams, TheAgentListensOnTheVsockPortThatItIsTold) {
  const os::UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) GTEST_SKIP() << "this kernel has no vsock";
  sockaddr_vm name{};
  name.svm_family = AF_VSOCK;
  name.svm_cid = VMADDR_CID_ANY;
  name.svm_port = 64'107;
  const auto bind_here = [&] {
    const os::UniqueFd other(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::bind(other.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  };
  ASSERT_TRUE(bind_here());
  const AgentUnderTest agent({"--vsock", std::to_string(name.svm_port)});
  bool taken = false;
  for (int i = 0; i < 500 && !taken; ++i) {
    taken = !bind_here() && errno == EADDRINUSE;
    if (!taken) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace caisson::agent
