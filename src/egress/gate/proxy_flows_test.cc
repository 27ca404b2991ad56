// SPDX-License-Identifier: Apache-2.0
// How the gate's proxy passes on what it has let through: order, ends, resets, limits, and what one
// machine can take from another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>

#include "egress/gate/limits.h"
#include "egress/gate/proxy.h"
#include "egress/gate/test_hello.h"
#include "egress/gate/test_proxy.h"

namespace caisson::egress::gate {
namespace {

TEST_F(ProxyTest, resets_one_on_which_nothing_moves) {
  ProxyOptions options;
  options.patience_idle = std::chrono::milliseconds(200);
  Start(Echo, options);
  const os::UniqueFd idle = gate_->Connect({kGood, 443});
  SendAll(idle.get(), HelloFor("good.test"));
  EXPECT_EQ(Received(idle.get()), HelloFor("good.test") + "|reset");
}

TEST_F(ProxyTest, resets_a_half_closed_one_on_which_nothing_moves) {
  ProxyOptions options;
  options.patience_half_closed = std::chrono::milliseconds(200);
  // The destination's thread outlives this function: what it looks at is its own, too.
  const auto done = std::make_shared<std::promise<void>>();
  Start(
      [ended = done->get_future().share()](int fd) {
        char byte = 0;
        while (AwaitReadable(fd) && ::recv(fd, &byte, 1, 0) > 0) {
        }
        ended.wait();
      },
      options);
  const os::UniqueFd half = gate_->Connect({kGood, 443});
  SendAll(half.get(), HelloFor("good.test"));
  ::shutdown(half.get(), SHUT_WR);
  EXPECT_EQ(Received(half.get()), "|reset");
  done->set_value();
}

TEST_F(ProxyTest, passes_bodies_of_any_size_on) {
  Start();
  std::string body(3'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 977) body[i] = static_cast<char>(i);
  std::string chunks;
  for (std::size_t at = 0; at < body.size(); at += 100'000) {
    chunks += "186A0\r\n" + body.substr(at, 100'000) + "\r\n";
  }
  const std::string stream =
      "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 3000000\r\n\r\n" + body +
      "POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks +
      "0\r\n\r\n" + Get("also.test");
  const os::UniqueFd fd = gate_->Connect({kGood, 80});
  std::thread sender([&] { SendAll(fd.get(), stream); });
  EXPECT_TRUE(Received(fd.get(), stream.size()) == stream);
  sender.join();
}

TEST_F(ProxyTest, keeps_half_closes) {
  // Answers only once the guest has said all.
  Start([](int fd) {
    const std::string all = Received(fd);
    SendAll(fd, "got " + std::to_string(all.size()));
  });
  const std::string hello = HelloFor("good.test");
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  SendAll(fd.get(), hello + DataRecord("more"));
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_EQ(Received(fd.get()), "got " + std::to_string(hello.size() + 9 + 4) + "|end");
}

TEST_F(ProxyTest, lets_the_destination_speak_last) {
  Start([](int fd) {
    std::array<char, 16> bytes;
    (void)!::recv(fd, bytes.data(), bytes.size(), 0);
    SendAll(fd, "all that I have");
    ::shutdown(fd, SHUT_WR);
    while (::recv(fd, bytes.data(), bytes.size(), 0) > 0) continue;
  });
  const os::UniqueFd fd = gate_->Connect({kGood, 80});
  SendAll(fd.get(), Get("good.test"));
  EXPECT_EQ(Received(fd.get()), "all that I have|end");
}

TEST_F(ProxyTest, waits_for_the_slower_side_and_loses_nothing) {
  constexpr std::size_t kBytes = 96u << 20;  // more than all buffers on the way
  const auto byte_at = [](std::size_t i) { return static_cast<char>(i * 7 + i / 4096); };
  std::promise<std::size_t> stopped;
  Start([&](int fd) {
    (void)Received(fd, HelloFor("good.test").size());
    std::string block(65536, '\0');
    bool is_first = true;
    for (std::size_t at = 0; at < kBytes;) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = byte_at(at + i);
      const ssize_t sent = ::send(fd, block.data(), std::min(block.size(), kBytes - at),
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) at += static_cast<std::size_t>(sent);
      if (sent >= 0 || errno != EAGAIN) continue;
      pollfd event{fd, POLLOUT, 0};
      if (::poll(&event, 1, is_first ? 300 : kLongMilliseconds) > 0) continue;
      if (!is_first) return;
      stopped.set_value(at);  // the guest, which does not read yet, holds it up
      is_first = false;
    }
    if (is_first) stopped.set_value(kBytes);
  });
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  SendAll(fd.get(), HelloFor("good.test"));
  EXPECT_LT(stopped.get_future().get(), kBytes);
  std::size_t at = 0;
  bool is_same = true;
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(got))) {
      is_same &= c == byte_at(at++);
    }
  }
  EXPECT_EQ(at, kBytes);
  EXPECT_TRUE(is_same);
}

TEST_F(ProxyTest, passes_a_reset_on) {
  Start([](int fd) {
    (void)Received(fd, 5);
    ResetOnClose(fd);
  });
  EXPECT_TRUE(Try(HelloFor("good.test")).ends_with("|reset"));

  std::promise<std::string> seen;
  Start([&](int fd) { seen.set_value(Received(fd)); });
  {
    const os::UniqueFd fd = gate_->Connect({kGood, 443});
    SendAll(fd.get(), HelloFor("good.test"));
    while (destination_->connections() == 0) std::this_thread::yield();
    ResetOnClose(fd.get());
  }
  EXPECT_TRUE(seen.get_future().get().ends_with("|reset"));
}

TEST_F(ProxyTest, resets_when_the_destination_does_not_take_it) {
  Start();
  gate_->Serve({kGood, 443}, 1);  // nobody is there
  EXPECT_EQ(Try(HelloFor("good.test")), "|reset");
  EXPECT_EQ(gate_->Denial(1), "unreachable good.test");
}

TEST_F(ProxyTest, drops_all_of_a_machine_that_is_forgotten) {
  Start();
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  SendAll(fd.get(), HelloFor("good.test"));
  EXPECT_EQ(Received(fd.get(), 5).size(), 5u);
  gate_->Forget(kMachine);
  EXPECT_TRUE(Received(fd.get()).ends_with("|reset"));
  EXPECT_EQ(Try(HelloFor("good.test")), "|reset");
}

TEST_F(ProxyTest, has_limits_for_one_machine_and_for_all) {
  ProxyOptions options;
  options.max_flows_of_machine = 3;
  options.max_flows = 5;
  Start(Echo, options);
  gate_->SetMachine(kOtherMachine, 1, Rules());
  std::vector<os::UniqueFd> held;
  for (int i = 0; i < 3; ++i) held.push_back(gate_->Connect({kGood, 443}));
  EXPECT_EQ(Try("x"), "|reset");
  EXPECT_EQ(gate_->Denial(1), "limit ");
  for (int i = 0; i < 2; ++i) held.push_back(gate_->Connect({kGood, 443}, kOtherMachine));
  const os::UniqueFd one_more = gate_->Connect({kGood, 443}, kOtherMachine);
  EXPECT_EQ(Received(held[3].get()), "|reset") << "in exchange, since it has its share";
  EXPECT_EQ(gate_->Denial(2), "limit ");
  EXPECT_FALSE(AwaitReadable(one_more.get(), 50));
  EXPECT_FALSE(AwaitReadable(held[0].get(), 0)) << "of the other machine";
  held.clear();
  std::string got;
  for (int i = 0; i < 100 && got != "echoed"; ++i) got = Try(HelloFor("good.test"));
  EXPECT_EQ(got, "echoed") << "those that have ended count no more";
}

TEST_F(ProxyTest, lets_no_machines_hold_all_connections) {
  constexpr std::uint32_t kThird = 0x7f000104;
  ProxyOptions options;
  options.max_flows_of_machine = 4;
  options.max_flows = 8;
  Start(Echo, options);
  const Crowd crowd(Crowd::Does::kEcho);
  gate_->Serve({kGood, 443}, crowd.port());
  const auto exchange = [](const os::UniqueFd& fd, const std::string& bytes) {
    return SendAll(fd.get(), bytes) && Received(fd.get(), bytes.size()) == bytes;
  };
  std::map<std::uint32_t, std::vector<os::UniqueFd>> open;
  for (const std::uint32_t machine : {kMachine, kOtherMachine, kThird}) {
    if (machine != kMachine) gate_->SetMachine(machine, 1, Rules());
    Resolve("good.test", machine);
    for (int i = 0; i < 4; ++i) {
      // All of them move, all the time.
      for (const auto& [other, fds] : open) {
        if (other == machine) continue;
        for (const os::UniqueFd& fd : fds) exchange(fd, "x");
      }
      open[machine].push_back(gate_->Connect({kGood, 443}, machine));
      ASSERT_TRUE(exchange(open[machine].back(), HelloFor("good.test"))) << machine << " " << i;
    }
  }
  for (const auto& [machine, fds] : open) {
    const auto living =
        std::ranges::count_if(fds, [&](const os::UniqueFd& fd) { return exchange(fd, "x"); });
    EXPECT_GE(living, 2) << machine;
    EXPECT_LE(living, 3) << machine;
  }
  EXPECT_EQ(gate_->Denial(4), "limit good.test") << "the owners are told";
}

TEST_F(ProxyTest, keeps_no_more_than_is_reckoned_with) {
  const auto descriptors = [] {
    std::vector<int> found;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      found.push_back(std::stoi(each.path().filename().string()));
    }
    return found;
  };
  const auto option = [](int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
  };
  ProxyOptions options;
  options.max_wide = 2;
  Start(Echo, options);
  const Crowd crowd(Crowd::Does::kTalk);
  gate_->Serve({kGood, 443}, crowd.port());
  const std::size_t before = descriptors().size();
  constexpr std::size_t kFlows = 3;
  std::vector<os::UniqueFd> open;
  for (std::size_t i = 0; i < kFlows; ++i) {
    // Both sides talk and do not listen: all buffers and pipes are full.
    open.push_back(gate_->Connect({kGood, 443}));
    SendAll(open.back().get(), HelloFor("good.test"));
    ASSERT_TRUE(AwaitReadable(open.back().get()));
    const std::string bytes(16u << 20, 'x');
    ::send(open.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  while (crowd.size() < kFlows) std::this_thread::yield();
  const std::vector<int> now = descriptors();
  EXPECT_LE(now.size(), before + kFlows * (kDescriptorsOfFlow + 2)) << "two are the test's";
  const auto with_buffers = [&](int bytes) {
    return std::ranges::count_if(now, [&](int fd) {
      return option(fd, SOL_SOCKET, SO_RCVBUF) == 2 * bytes &&
             option(fd, SOL_SOCKET, SO_SNDBUF) == 2 * bytes;
    });
  };
  EXPECT_EQ(with_buffers(Proxy::kWideBytes), 2 * 2 + 1) << "and what listens";
  EXPECT_EQ(with_buffers(Proxy::kNarrowBytes), 2 * 1);
}

TEST_F(ProxyTest, passes_everything_on_by_narrow_buffers_too) {
  ProxyOptions options;
  options.max_wide = 0;
  Start(Echo, options);
  const std::string post = "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 200000\r\n\r\n" +
                           std::string(200'000, 'x') + Get("also.test");
  const os::UniqueFd fd = gate_->Connect({kGood, 80});
  std::thread sender([&] { SendAll(fd.get(), post); });
  EXPECT_TRUE(Received(fd.get(), post.size()) == post);
  sender.join();
}

// Median, in milliseconds.
template <typename Work>
double Takes(Work work) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    work(i);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    times.push_back(took.count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

TEST_F(ProxyTest, serves_others_while_one_floods_it_with_small_requests) {
  Start();
  Crowd crowd(Crowd::Does::kListen);
  gate_->Serve({kGood, 80}, crowd.port());
  gate_->SetMachine(kOtherMachine, 1, Rules());
  Resolve("good.test", kOtherMachine);
  std::string requests;
  for (int i = 0; i < 2000; ++i) requests += Get("good.test");
  std::vector<pollfd> flood;
  std::vector<os::UniqueFd> held;
  for (int i = 0; i < 96; ++i) {
    held.push_back(gate_->Connect({kGood, 80}));
    flood.push_back({held.back().get(), POLLOUT, 0});
  }
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    std::vector<std::size_t> at(flood.size());
    while (!stop) {
      ::poll(flood.data(), flood.size(), 20);
      for (std::size_t i = 0; i < flood.size(); ++i) {
        if (flood[i].revents == 0) continue;
        const ssize_t sent = ::send(flood[i].fd, requests.data() + at[i], requests.size() - at[i],
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) at[i] = (at[i] + static_cast<std::size_t>(sent)) % requests.size();
      }
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double asked = Takes([&](int) { Resolve("good.test"); });
  const double ruled = Takes(
      [&](int i) { gate_->SetMachine(kOtherMachine, static_cast<unsigned>(i) + 2, Rules()); });
  const double connected = Takes([&](int) {
    Resolve("good.test", kOtherMachine);
    const os::UniqueFd fd = gate_->Connect({kGood, 443}, kOtherMachine);
    SendAll(fd.get(), HelloFor("good.test"));
    EXPECT_EQ(Received(fd.get(), 5), HelloFor("good.test").substr(0, 5));
  });
  stop = true;
  sender.join();
  EXPECT_GT(crowd.heard(), 64u << 10) << "there was a flood";
  // Whoever waits behind such a flood waits until it ends; a busy machine is given its time.
  EXPECT_LT(asked, 2000) << "ms for a question";
  EXPECT_LT(ruled, 2000) << "ms for new rules";
  EXPECT_LT(connected, 4000) << "ms for a connection";
  RecordProperty("asked", std::to_string(asked));
  RecordProperty("ruled", std::to_string(ruled));
  RecordProperty("connected", std::to_string(connected));
}

}  // namespace
}  // namespace caisson::egress::gate
