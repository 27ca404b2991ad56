// SPDX-License-Identifier: Apache-2.0
// What the gate's proxy lets through, with real sockets: machines that say one name and mean
// another.
#include "egress/gate/proxy.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "egress/gate/test_hello.h"
#include "egress/gate/test_proxy.h"

namespace caisson::egress::gate {
namespace {

TEST_F(ProxyTest, lets_an_allowed_name_through_to_its_address) {
  Start();
  EXPECT_EQ(Try(HelloFor("good.test")), "echoed");
  EXPECT_EQ(Try(HelloOfOpenSsl("GOOD.test") + DataRecord("early data")), "echoed");
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

TEST_F(ProxyTest, resets_a_second_hello_of_another_name) {
  const auto heard = std::make_shared<std::promise<std::string>>();
  Start([heard](int fd) {
    const std::string first = Received(fd, HelloFor("good.test").size());
    SendAll(fd, RetryRequest());
    heard->set_value(first + Received(fd));
  });
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  // Before it is asked for: it has to wait for that.
  SendAll(fd.get(), HelloFor("good.test") + HelloFor("other.test"));
  EXPECT_TRUE(Received(fd.get()).ends_with("|reset"));
  EXPECT_EQ(gate_->Denial(1), "foreign_name other.test") << "though it is allowed elsewhere";
  EXPECT_EQ(heard->get_future().get(), HelloFor("good.test") + "|reset");
}

TEST_F(ProxyTest, lets_a_second_hello_of_the_same_name_through) {
  Start([&](int fd) {
    (void)Received(fd, HelloFor("good.test").size());
    SendAll(fd, RetryRequest());
    Echo(fd);
  });
  const os::UniqueFd fd = gate_->Connect({kGood, 443});
  SendAll(fd.get(), HelloFor("good.test"));
  EXPECT_EQ(Received(fd.get(), RetryRequest().size()), RetryRequest());
  const std::string more = HelloFor("good.test") + DataRecord("more");
  SendAll(fd.get(), more);
  EXPECT_EQ(Received(fd.get(), more.size()), more);
  EXPECT_TRUE(gate_->denials().empty());
}

TEST_F(ProxyTest, resets_what_was_not_redirected) {
  Start();
  const os::UniqueFd stranger = gate_->Connect({kGood, 443}, 0x7f000109);
  EXPECT_EQ(Received(stranger.get()), "|reset");
}

}  // namespace
}  // namespace caisson::egress::gate
