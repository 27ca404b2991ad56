// SPDX-License-Identifier: Apache-2.0
// Channels over one stream, both sides, and the pump between them and sockets.
#include "agent/channels.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace caisson::agent {
namespace {

struct Heard final : ChannelEvents {
  void OnGreeting(std::uint64_t number) override { greetings.push_back(number); }
  void OnOpen(std::uint32_t channel) override { opened.push_back(channel); }
  void OnData(std::uint32_t channel, std::string_view bytes) override { data[channel] += bytes; }
  void OnRoom(std::uint32_t) override {}
  void OnEnd(std::uint32_t channel) override { ended.push_back(channel); }
  void OnClose(std::uint32_t channel) override { closed.push_back(channel); }

  std::vector<std::uint64_t> greetings;
  std::vector<std::uint32_t> opened, ended, closed;
  std::map<std::uint32_t, std::string> data;
};

class ChannelsTest : public testing::Test {
 protected:
  // Passes on what both have to say, in pieces of random sizes.
  void Exchange() {
    while (!host_.out().empty() || !agent_.out().empty()) {
      EXPECT_TRUE(Pass(host_, agent_));
      EXPECT_TRUE(Pass(agent_, host_));
    }
  }
  bool Pass(Channels& from, Channels& to) {
    std::string bytes = std::exchange(from.out(), {});
    bool fine = true;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + random_() % 3000;
      fine = to.Receive(std::string_view(bytes).substr(at, size)) && fine;
      at += size;
    }
    return fine;
  }
  void Greet(std::uint64_t number = 7) {
    host_.Greet(number);
    Exchange();
  }

  std::mt19937 random_{1};
  Heard on_host_, on_agent_;
  Channels host_{Channels::Side::kHost, on_host_};
  Channels agent_{Channels::Side::kAgent, on_agent_};
};

TEST_F(ChannelsTest, carry_bytes_both_ways_and_end_one_side_at_a_time) {
  Greet();
  const std::uint32_t channel = host_.Open();
  host_.Send(channel, "question");
  host_.End(channel);
  Exchange();
  EXPECT_EQ(on_agent_.opened, std::vector{channel});
  EXPECT_EQ(on_agent_.data[channel], "question");
  EXPECT_EQ(on_agent_.ended, std::vector{channel});
  agent_.Send(channel, "answer");
  agent_.Close(channel);
  Exchange();
  EXPECT_EQ(on_host_.data[channel], "answer");
  EXPECT_EQ(on_host_.closed, std::vector{channel});
  EXPECT_EQ(agent_.count(), 1u) << "until the host has closed it, too";
  host_.Close(channel);
  Exchange();
  EXPECT_EQ(host_.count() + agent_.count(), 0u);
}

TEST_F(ChannelsTest, a_side_sends_no_more_than_the_other_has_room_for) {
  Greet();
  const std::uint32_t channel = host_.Open();
  EXPECT_EQ(host_.Room(channel), kChannelWindow);
  host_.Send(channel, std::string(kChannelWindow, 'x'));
  EXPECT_EQ(host_.Room(channel), 0u);
  Exchange();
  EXPECT_EQ(host_.Room(channel), 0u) << "nobody has taken it";
  agent_.Took(channel, kChannelWindow / 2);
  Exchange();
  EXPECT_EQ(host_.Room(channel), kChannelWindow / 2);
}

TEST_F(ChannelsTest, more_than_was_allowed_breaks_the_stream) {
  Greet();
  const std::uint32_t channel = host_.Open();
  host_.Send(channel, std::string(kChannelWindow, 'x'));
  host_.Send(channel, "more");
  EXPECT_FALSE(Pass(host_, agent_));
}

TEST_F(ChannelsTest, what_is_no_frame_breaks_the_stream) {
  for (const std::string& bytes :
       {std::string("\x09\x01\0\0\0\0\0\0\0", 9), std::string("\x02\x01\0\0\0\x01\0\0\0", 9),
        std::string("\x01\x01\0\0\0\x01\0\0\0", 9), std::string("\0\0\0\0\0\0\0\0\0", 9)}) {
    Greet();
    EXPECT_FALSE(agent_.Receive(bytes));
    EXPECT_FALSE(agent_.Receive("more")) << "it stays broken";
  }
  Greet(9);
  EXPECT_EQ(on_agent_.greetings.back(), 9u) << "until the host greets anew";
  EXPECT_FALSE(host_.Receive(std::string("\x01\x01\0\0\0\0\0\0\0", 9))) << "the agent opens none";
}

TEST_F(ChannelsTest, a_copy_in_the_middle_of_a_frame_begins_anew) {
  Greet();
  const std::uint32_t channel = host_.Open();
  host_.Send(channel, std::string(1000, 'x'));
  const std::string half = std::exchange(host_.out(), {}).substr(0, 500);
  EXPECT_TRUE(agent_.Receive(half));
  agent_.Send(channel, std::string(1000, 'y'));
  const std::string theirs = std::exchange(agent_.out(), {}).substr(300);
  // Another process stands beside the copy.
  Heard heard;
  Channels other(Channels::Side::kHost, heard);
  other.Greet(8);
  EXPECT_TRUE(Pass(other, agent_));
  EXPECT_TRUE(other.Receive(theirs)) << "passed over";
  EXPECT_FALSE(other.greeted());
  EXPECT_TRUE(Pass(agent_, other));
  EXPECT_TRUE(other.greeted());
  EXPECT_EQ(heard.greetings, std::vector<std::uint64_t>{8});
  EXPECT_EQ(agent_.count(), 0u);
}

TEST_F(ChannelsTest, an_answer_to_another_greeting_is_passed_over) {
  host_.Greet(5);
  Heard heard;
  Channels stranger(Channels::Side::kHost, heard);
  stranger.Greet(6);
  EXPECT_TRUE(Pass(stranger, agent_));
  EXPECT_TRUE(Pass(agent_, host_));
  EXPECT_FALSE(host_.greeted());
  Exchange();
  EXPECT_TRUE(host_.greeted());
}

TEST_F(ChannelsTest, the_mark_within_data_is_data) {
  Greet();
  const std::string mark(reinterpret_cast<const char*>(kStreamMark.data()), kMarkBytes);
  const std::uint32_t channel = host_.Open();
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::string(random_() % 900, 'a') + mark + mark;
  host_.Send(channel, text);
  Exchange();
  EXPECT_EQ(on_agent_.data[channel], text);
  EXPECT_EQ(on_agent_.greetings.size(), 1u);
}

TEST_F(ChannelsTest, what_comes_for_a_channel_that_was_just_closed_is_dropped) {
  Greet();
  const std::uint32_t channel = host_.Open();
  Exchange();
  agent_.Send(channel, "late");
  host_.Close(channel);
  Exchange();
  EXPECT_EQ(on_host_.data[channel], "");
  agent_.Close(channel);
  Exchange();
  EXPECT_EQ(host_.count() + agent_.count(), 0u);
}

}  // namespace
}  // namespace caisson::agent
