// SPDX-License-Identifier: Apache-2.0
// The gate's proxy with real sockets: destinations that echo, stall, reset or are not there, and
// machines that say one name and mean another.
#include "egress/gate/proxy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "egress/gate/dns_message.h"
#include "egress/gate/test_gate.h"
#include "egress/gate/test_hello.h"

namespace caisson::egress::gate {
namespace {

constexpr std::uint32_t kGood = 0xcb00710a;   // 203.0.113.10
constexpr std::uint32_t kOther = 0xcb007114;  // 203.0.113.20

// What has come until `size` bytes are there or the other side is done; "…|end" or "…|reset" then.
std::string Received(int fd, std::size_t size = 1u << 30) {
  std::string got;
  while (got.size() < size) {
    if (!AwaitReadable(fd)) return got + "|nothing";
    std::array<char, 65536> bytes;
    const ssize_t count = ::recv(fd, bytes.data(), std::min(bytes.size(), size - got.size()), 0);
    if (count == 0) return got + "|end";
    if (count < 0) return got + (errno == ECONNRESET ? "|reset" : "|error");
    got.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return got;
}
// False when the other side has gone, which recv does not say again.
bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Runs `serve` for each connection, one after another.
class Destination {
 public:
  explicit Destination(std::function<void(int fd)> serve) : serve_(std::move(serve)) {
    listener_ = Listening(kLoopback);
    thread_ = std::thread([this] {
      while (!stop_) {
        if (!AwaitReadable(listener_.get(), 20)) continue;
        const os::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ++connections_;
        serve_(fd.get());
      }
    });
  }
  ~Destination() {
    stop_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return PortOf(listener_.get()); }
  int connections() const { return connections_; }

 private:
  std::function<void(int fd)> serve_;
  os::UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};
void Echo(int fd) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    SendAll(fd, {bytes.data(), static_cast<std::size_t>(got)});
  }
}

class ProxyTest : public ::testing::Test {
 protected:
  ProxyTest()
      : names_([this](const std::string& question, bool) {
          const auto query = DecodeQuery(question)->query;
          return std::vector{
              EncodeAnswer(query, Rcode::kNoError, {addresses_.at(query.name)}, 60, 512)};
        }) {}
  void Start(std::function<void(int fd)> serve = Echo, ProxyOptions options = {}) {
    destination_.emplace(std::move(serve));
    gate_.emplace(TestGate::Options{.resolvers = {names_.address()}, .proxy = std::move(options)});
    for (const std::uint16_t port : {80, 443}) {
      gate_->Serve({kGood, port}, destination_->port());
      gate_->Serve({kOther, port}, destination_->port());
    }
    gate_->SetMachine(kMachine, 1, Rules());
    for (const char* name : {"good.test", "also.test", "other.test", "tls.test"}) Resolve(name);
  }
  static std::vector<NameRule> Rules() {
    return {RuleFor("good.test", {}, 0), RuleFor("also.test", {}, 1), RuleFor("other.test", {}, 2),
            RuleFor("tls.test", 443, 3)};
  }
  void Resolve(const std::string& name) {
    EXPECT_FALSE(gate_->Ask(EncodeQuestion(7, WireName(name), false)).empty());
  }
  // What a guest gets that sends this to `to`.
  std::string Try(std::string_view bytes, const Endpoint& to = {kGood, 443}) {
    const os::UniqueFd fd = gate_->Connect(to);
    if (!SendAll(fd.get(), bytes)) return "|reset";
    const std::string got = Received(fd.get(), bytes.size());
    return got == bytes ? "echoed" : got;
  }

  const std::map<std::string, std::uint32_t> addresses_ = {
      {"good.test", kGood}, {"also.test", kGood}, {"tls.test", kGood}, {"other.test", kOther}};
  FakeServer names_;
  std::optional<Destination> destination_;
  std::optional<TestGate> gate_;
};

std::string Get(const std::string& host, const std::string& more = "") {
  return "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
}

TEST_F(ProxyTest, lets_an_allowed_name_through_to_its_address) {
  Start();
  EXPECT_EQ(Try(HelloFor("good.test")), "echoed");
  EXPECT_EQ(Try(HelloOfOpenSsl("GOOD.test") + "early data"), "echoed");
  EXPECT_EQ(Try(Get("good.test"), {kGood, 80}), "echoed");
  EXPECT_EQ(Try(Get("good.test:443")), "echoed") << "HTTP where TLS is usual";
  EXPECT_EQ(Try(HelloFor("tls.test")), "echoed");
  EXPECT_TRUE(gate_->denials().empty());
  gate_->AwaitCounters([](const auto& counted) { return counted.connections == 5; });
}

TEST_F(ProxyTest, takes_a_name_in_pieces) {
  Start();
  for (const std::string& bytes : {HelloFor("good.test"), Get("good.test:443")}) {
    const os::UniqueFd fd = gate_->Connect({kGood, 443});
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
    for (const char c : bytes) ASSERT_EQ(::send(fd.get(), &c, 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(Received(fd.get(), bytes.size()), bytes);
  }
}

TEST_F(ProxyTest, resets_a_foreign_name) {
  Start();
  EXPECT_EQ(Try(HelloFor("evil.test")), "|reset");
  EXPECT_EQ(gate_->Denial(1), "foreign_name evil.test");
  EXPECT_EQ(gate_->denials()[0].address, kGood);
  EXPECT_EQ(gate_->denials()[0].port, 443);
  EXPECT_EQ(Try(Get("evil.test"), {kGood, 80}), "|reset");
  EXPECT_EQ(gate_->Denial(2), "foreign_name evil.test");
  EXPECT_EQ(Try(HelloFor("sub.good.test")), "|reset");
  EXPECT_EQ(Try(Get("tls.test"), {kGood, 80}), "|reset") << "its rule has another port";
  EXPECT_EQ(destination_->connections(), 0);
}

TEST_F(ProxyTest, resets_an_allowed_name_at_another_address) {
  Start();
  EXPECT_EQ(Try(HelloFor("good.test"), {kOther, 443}), "|reset");
  EXPECT_EQ(gate_->Denial(1), "foreign_address good.test");
  EXPECT_EQ(gate_->denials()[0].rule, 0);
  EXPECT_EQ(Try(Get("other.test"), {kGood, 80}), "|reset");
  EXPECT_EQ(gate_->Denial(2), "foreign_address other.test");
  gate_->SetMachine(kMachine, 2, {RuleFor("good.test"), RuleFor("new.test")});
  EXPECT_EQ(Try(HelloFor("new.test")), "|reset") << "it was never resolved";
  EXPECT_EQ(destination_->connections(), 0);
}

TEST_F(ProxyTest, resets_what_names_nobody) {
  Start();
  EXPECT_EQ(Try(HelloFor("203.0.113.10")), "|reset");
  EXPECT_EQ(gate_->Denial(1), "malformed ");
  EXPECT_EQ(Try(Hello({})), "|reset");
  EXPECT_EQ(gate_->Denial(2), "no_name ");
  EXPECT_EQ(Try(Get("203.0.113.10:443")), "|reset");
  EXPECT_EQ(gate_->Denial(3), "no_name 203.0.113.10:443");
  EXPECT_EQ(Try("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "|reset");
  EXPECT_EQ(gate_->Denial(4), "malformed ");
  EXPECT_EQ(Try("CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n"), "|reset");
  EXPECT_EQ(gate_->Denial(5), "tunnel good.test:443");
  EXPECT_EQ(Try("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "|reset");
  EXPECT_EQ(Try(Get("good.test:443", "Connection: upgrade\r\nUpgrade: websocket\r\n")), "|reset");
  EXPECT_EQ(destination_->connections(), 0);
}

TEST_F(ProxyTest, takes_http_only_at_port_80) {
  Start();
  EXPECT_EQ(Try(HelloFor("good.test"), {kGood, 80}), "|reset");
  EXPECT_EQ(gate_->Denial(1), "malformed ");
  EXPECT_EQ(Try(HelloFor("good.test").substr(0, 1), {kGood, 80}), "|reset");
  EXPECT_EQ(destination_->connections(), 0);
}

TEST_F(ProxyTest, resets_one_that_takes_too_long_to_say_its_name) {
  ProxyOptions options;
  options.patience_for_name = std::chrono::milliseconds(100);
  Start(Echo, options);
  const os::UniqueFd silent = gate_->Connect({kGood, 443});
  const os::UniqueFd slow = gate_->Connect({kGood, 443});
  SendAll(slow.get(), HelloFor("good.test").substr(0, 20));
  EXPECT_EQ(Received(silent.get()), "|reset");
  EXPECT_EQ(Received(slow.get()), "|reset");
  EXPECT_EQ(gate_->Denial(2), "no_name ");
}

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

TEST_F(ProxyTest, checks_every_request_of_a_connection) {
  Start();
  const Endpoint to{kGood, 80};
  {
    const os::UniqueFd fd = gate_->Connect(to);
    for (const char* host : {"good.test", "also.test", "good.test"}) {
      SendAll(fd.get(), Get(host));
      EXPECT_EQ(Received(fd.get(), Get(host).size()), Get(host));
    }
    SendAll(fd.get(), Get("evil.test"));
    EXPECT_EQ(Received(fd.get()), "|reset");
    EXPECT_EQ(gate_->Denial(1), "foreign_name evil.test");
  }
  {
    const os::UniqueFd fd = gate_->Connect(to);
    SendAll(fd.get(), Get("good.test") + Get("evil.test"));
    EXPECT_TRUE(Received(fd.get()).ends_with("|reset")) << "one behind the other";
  }
  {
    const os::UniqueFd fd = gate_->Connect(to);
    const std::string post = "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 5\r\n\r\nhello";
    SendAll(fd.get(), post + Get("other.test"));
    EXPECT_TRUE(Received(fd.get()).ends_with("|reset")) << "allowed, but elsewhere";
    EXPECT_EQ(gate_->Denial(3), "foreign_address other.test");
  }
  {
    const os::UniqueFd fd = gate_->Connect(to);
    SendAll(fd.get(), Get("good.test"));
    EXPECT_EQ(Received(fd.get(), Get("good.test").size()), Get("good.test"));
    SendAll(fd.get(), Get("good.test", "Upgrade: h2c\r\n"));
    EXPECT_EQ(Received(fd.get()), "|reset");
  }
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

TEST_F(ProxyTest, sees_a_request_behind_a_body_of_any_size) {
  Start();
  for (const std::size_t size : {1u, 100u, 70'000u, 400'000u}) {
    const std::string post =
        "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: " + std::to_string(size) +
        "\r\n\r\n";
    const os::UniqueFd fd = gate_->Connect({kGood, 80});
    SendAll(fd.get(), post);
    EXPECT_EQ(Received(fd.get(), post.size()), post);  // from here on it is passed on by length
    const std::string body(size, 'x');
    std::thread sender([&] { SendAll(fd.get(), body + Get("also.test")); });
    EXPECT_TRUE(Received(fd.get(), size) == body) << size;
    EXPECT_EQ(Received(fd.get(), Get("also.test").size()), Get("also.test")) << size;
    sender.join();
    const std::size_t before = gate_->denials().size();
    SendAll(fd.get(), post + body + Get("evil.test"));
    EXPECT_TRUE(Received(fd.get()).ends_with("|reset")) << size;
    EXPECT_EQ(gate_->Denial(before + 1), "foreign_name evil.test");
  }
}

TEST_F(ProxyTest, keeps_half_closes) {
  // Answers only once the guest has said all.
  Start([](int fd) {
    const std::string all = Received(fd);
    SendAll(fd, "got " + std::to_string(all.size()));
  });
  const std::string hello = HelloFor("good.test");
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  SendAll(fd.get(), hello + "more");
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_EQ(Received(fd.get()), "got " + std::to_string(hello.size() + 4 + 4) + "|end");
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

TEST_F(ProxyTest, drops_what_new_rules_do_not_allow) {
  Start();
  const auto open = [&](const std::string& name, const std::string& bytes, std::uint16_t port) {
    os::UniqueFd fd = gate_->Connect({addresses_.at(name), port});
    SendAll(fd.get(), bytes);
    EXPECT_EQ(Received(fd.get(), bytes.size()), bytes);
    return fd;
  };
  // One at a time: the destination is.
  os::UniqueFd kept = open("good.test", HelloFor("good.test"), 443);
  gate_->SetMachine(kMachine, 2, {RuleFor("good.test", 443, 5)});
  SendAll(kept.get(), "still");
  EXPECT_EQ(Received(kept.get(), 5), "still");
  gate_->SetMachine(kMachine, 3, {RuleFor("also.test")});
  EXPECT_EQ(Received(kept.get()), "|reset");
  EXPECT_EQ(gate_->Denial(1), "policy_changed good.test");
  EXPECT_EQ(Try(HelloFor("good.test")), "|reset");
  // A connection that has been used for two names.
  gate_->SetMachine(kMachine, 4, Rules());
  for (const char* name : {"good.test", "also.test"}) Resolve(name);
  os::UniqueFd both = open("good.test", Get("good.test") + Get("also.test"), 80);
  gate_->SetMachine(kMachine, 5, {RuleFor("also.test")});
  EXPECT_EQ(Received(both.get()), "|reset");
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
  EXPECT_EQ(Received(one_more.get()), "|reset");
  held.clear();
  std::string got;
  for (int i = 0; i < 100 && got != "echoed"; ++i) got = Try(HelloFor("good.test"));
  EXPECT_EQ(got, "echoed") << "those that have ended count no more";
}

TEST_F(ProxyTest, resets_what_was_not_redirected) {
  Start();
  const os::UniqueFd stranger = gate_->Connect({kGood, 443}, 0x7f000109);
  EXPECT_EQ(Received(stranger.get()), "|reset");
}

}  // namespace
}  // namespace caisson::egress::gate
