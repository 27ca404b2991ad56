// SPDX-License-Identifier: Apache-2.0
// Bytes between two sockets, piece by piece.
#include "egress/gate/flow.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace caisson::egress::gate {
namespace {

using State = Relay::State;
constexpr std::chrono::steady_clock::time_point kOver{};  // before now
constexpr auto kLater = std::chrono::steady_clock::time_point::max();

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    for (os::FdPair* pair : {&guest_, &world_}) {
      std::array<int, 2> fds{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
      *pair = {os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
    }
  }
  void Start(Relay::Looks looks) {
    relay_.emplace(pipes_, guest_.second.get(), world_.second.get(), "", std::move(looks));
  }
  // As much as there is room for.
  static std::size_t Fill(const os::UniqueFd& fd) {
    const std::string bytes(1u << 20, 'x');
    const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_GT(sent, 0);
    return static_cast<std::size_t>(sent);
  }
  static std::size_t Drain(const os::UniqueFd& fd) {
    std::size_t all = 0;
    std::array<char, 65536> bytes;
    for (ssize_t got = 0; (got = ::recv(fd.get(), bytes.data(), bytes.size(), 0)) > 0;) {
      all += static_cast<std::size_t>(got);
    }
    return all;
  }

  Pipes pipes_;
  os::FdPair guest_, world_;  // the other end, the relay's
  std::optional<Relay> relay_;
};

Relay::Verdict All(std::string_view bytes) { return {.size = bytes.size()}; }

TEST_F(RelayTest, stops_at_its_time_and_both_ways_have_gone_on) {
  for (const Relay::Looks& looks :
       {Relay::Looks{.out = {}, .in = {}}, Relay::Looks{.out = All, .in = All}}) {
    Start(looks);
    std::size_t out = Fill(guest_.first);
    std::size_t in = Fill(world_.first);
    // One piece in, and out.
    EXPECT_EQ(relay_->Continue(true, true, kOver), State::kAgain);
    EXPECT_EQ(relay_->Continue(false, false, kOver), State::kAgain);
    if (looks.out) {
      EXPECT_EQ(relay_->Continue(false, false, kOver), State::kAgain);
    }
    const std::size_t first_out = Drain(world_.first);
    const std::size_t first_in = Drain(guest_.first);
    EXPECT_GT(first_out, 0u);
    EXPECT_GT(first_in, 0u);
    EXPECT_LE(first_out, 256u << 10);
    EXPECT_LE(first_in, 256u << 10);
    out -= first_out;
    in -= first_in;
    for (int i = 0; i < 10'000 && out + in > 0; ++i) {
      const State state = relay_->Continue(true, true, kOver);
      EXPECT_TRUE(state == State::kAgain || state == State::kOpen);
      out -= Drain(world_.first);
      in -= Drain(guest_.first);
    }
    EXPECT_EQ(out + in, 0u);
    EXPECT_EQ(relay_->Continue(true, true, kOver), State::kOpen);
  }
}

TEST_F(RelayTest, looks_again_at_what_was_left) {
  std::vector<std::string> seen;
  Start({.out =
             [&](std::string_view bytes) {
               seen.emplace_back(bytes);
               return Relay::Verdict{.size = bytes.size() >= 2 ? 2u : 0u};
             },
         .in = {}});
  EXPECT_EQ(::send(guest_.first.get(), "abcde", 5, 0), 5);
  EXPECT_EQ(relay_->Continue(true, true, kLater), State::kOpen);
  EXPECT_EQ(Drain(world_.first), 4u);
  ASSERT_GE(seen.size(), 3u);
  EXPECT_EQ(seen[0], "abcde");
  EXPECT_EQ(seen[1], "cde");
  EXPECT_EQ(seen.back(), "e");
  ::shutdown(guest_.first.get(), SHUT_WR);
  EXPECT_EQ(relay_->Continue(true, false, kLater), State::kBroken) << "it will never be whole";
}

TEST_F(RelayTest, what_comes_in_frees_what_waits_to_go_out) {
  bool answered = false;
  Start({.out =
             [&](std::string_view bytes) {
               return Relay::Verdict{.size = answered ? bytes.size() : 0,
                                     .ahead = answered ? Relay::kAll : 0};
             },
         .in =
             [&](std::string_view bytes) {
               answered = true;
               return Relay::Verdict{.size = bytes.size(), .ahead = Relay::kAll};
             }});
  EXPECT_EQ(::send(guest_.first.get(), "question", 8, 0), 8);
  EXPECT_EQ(relay_->Continue(true, true, kLater), State::kOpen);
  EXPECT_EQ(Drain(world_.first), 0u);
  EXPECT_EQ(::send(world_.first.get(), "hello", 5, 0), 5);
  EXPECT_EQ(relay_->Continue(false, true, kLater), State::kOpen);
  EXPECT_EQ(Drain(guest_.first), 5u);
  EXPECT_EQ(Drain(world_.first), 8u);
  for (const auto* fd : {&guest_.first, &world_.first}) ::shutdown(fd->get(), SHUT_WR);
  EXPECT_EQ(relay_->Continue(true, true, kLater), State::kDone);
}

}  // namespace
}  // namespace caisson::egress::gate
