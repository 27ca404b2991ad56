// SPDX-License-Identifier: Apache-2.0
#include "http/outbound.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "errors/outbound.h"
#include "http/outbound_guard.h"
#include "http/test_peer.h"
#include "http/web_url.h"

namespace caisson::http {
namespace {

using std::chrono::milliseconds;

// Answers what the test says, in turn; the last answer stays.
class FakeResolver final : public Resolver {
 public:
  using Answer = std::vector<std::string>;
  explicit FakeResolver(Answer first, Answer second = {}) : answers_{std::move(first)} {
    if (!second.empty()) answers_.push_back(std::move(second));
  }
  Result<std::vector<IpAddress>> Resolve(const std::string& host,
                                         std::chrono::steady_clock::time_point,
                                         const std::function<bool()>&) override {
    hosts.push_back(host);
    if (const auto ip = ParseIp(host)) return std::vector{*ip};
    std::vector<IpAddress> addresses;
    const std::size_t turn = std::min(lookups++, answers_.size() - 1);
    for (const std::string& text : answers_[turn]) addresses.push_back(*ParseIp(text));
    return addresses;
  }
  std::vector<std::string> hosts;
  std::size_t lookups = 0;

 private:
  std::vector<Answer> answers_;
};

OutboundPolicy Granting(const TestPeer& peer, Resolver* resolver = nullptr) {
  const std::string port = std::to_string(peer.port());
  return {.loopback = {{"127.0.0.1:" + port, "test.example:" + port}}, .resolver = resolver};
}

std::string Code(const auto& result) {
  return result ? "ok" : std::string(result.error().code.name);
}

Result<OutboundResponse> Get(const TestPeer& peer, const std::string& answer,
                             OutboundRequest request = {}) {
  request.url = peer.Url(answer);
  return MakeOutbound(Granting(peer))->Send(request, nullptr, {});
}

std::string Ok(std::string_view body) {
  return "HTTP/1.1 200 Fine\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nX-A: 1\r\nX-A: 2\r\n\r\n" + std::string(body);
}

TEST(Outbound, gives_status_reason_headers_and_body) {
  TestPeer peer;
  const auto response = Get(peer, Ok("hello"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->reason, "Fine");
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->headers.Count("x-a"), 2u);
  EXPECT_EQ(response->url, peer.Url());
}

TEST(Outbound, closed_addresses_are_refused_however_they_are_written) {
  TestPeer peer;
  const auto outbound = MakeOutbound({});
  const std::string port = ":" + std::to_string(peer.port());
  for (const std::string host : {"127.0.0.1",
                                 "localhost",
                                 "127.1",
                                 "2130706433",
                                 "0x7f000001",
                                 "0177.0.0.1",
                                 "0.0.0.0",
                                 "[::1]",
                                 "[::]",
                                 "[::ffff:127.0.0.1]",
                                 "[::ffff:7f00:1]",
                                 "[::127.0.0.1]",
                                 "10.0.0.1",
                                 "169.254.169.254",
                                 "192.168.1.1",
                                 "172.16.0.1",
                                 "100.64.0.1",
                                 "224.0.0.1",
                                 "255.255.255.255",
                                 "[fc00::1]",
                                 "[fe80::1]",
                                 "[fe80::1%25lo]",
                                 "[ff02::1]",
                                 "[64:ff9b::7f00:1]",
                                 "[2002:7f00:1::]",
                                 "[2001:0:7f00:1::]",
                                 "168.63.129.16",
                                 "198.18.0.1",
                                 "203.0.113.9",

                                 "LOCALHOST",
                                 "①②⑦.0.0.1"}) {
    EXPECT_EQ(Code(outbound->Send({.url = "http://" + host + port + "/"}, nullptr, {})),
              "outbound.refused")
        << host;
  }
  EXPECT_EQ(peer.connections(), 0);
}

TEST(Outbound, other_schemes_and_passwords_in_urls_are_refused) {
  const auto outbound = MakeOutbound({});
  for (const std::string url :
       {"file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "dict://example.com/",
        "http://user:pw@example.com/", "https://user@example.com/", "smtp://example.com/",
        "telnet://example.com/"}) {
    EXPECT_EQ(Code(outbound->Send({.url = url}, nullptr, {})), "outbound.refused") << url;
  }
  for (const std::string url : {"", "example.com", "http://", "http:///", "http://a b/",
                                "http://example.com:99999/", "http://ex\r\nample.com/", "/x"}) {
    EXPECT_EQ(Code(outbound->Send({.url = url}, nullptr, {})), "outbound.bad_request") << url;
  }
}

TEST(Outbound, one_closed_address_among_public_ones_refuses_the_name) {
  FakeResolver mixed({"93.184.216.34", "127.0.0.1"});
  const auto outbound = MakeOutbound({.resolver = &mixed});
  const auto sent = outbound->Send({.url = "http://mixed.example/"}, nullptr, {});
  EXPECT_EQ(Code(sent), "outbound.refused");
  EXPECT_NE(sent.error().message.find("127.0.0.1"), std::string::npos) << sent.error().message;
}

TEST(Outbound, a_name_is_asked_for_once_and_the_connection_goes_to_the_answer) {
  TestPeer peer;
  // Rebinding: by the time of a second lookup the name has another address.
  FakeResolver rebinding({"127.0.0.1"}, {"127.0.0.2"});
  const auto outbound = MakeOutbound(Granting(peer, &rebinding));
  peer.Answer(Ok("pinned"));
  const auto sent = outbound->Send(
      {.url = "http://test.example:" + std::to_string(peer.port()) + "/"}, nullptr, {});
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(sent->body, "pinned");
  EXPECT_EQ(rebinding.lookups, 1u);
}

TEST(Outbound, odd_spellings_of_a_name_are_pinned_too) {
  TestPeer peer;
  const std::string port = ":" + std::to_string(peer.port());
  peer.Answer(Ok("pinned"));
  for (const std::string host : {"TEST.example", "test.example.", "te%73t.example"}) {
    FakeResolver resolver({"127.0.0.1"});
    OutboundPolicy policy = Granting(peer, &resolver);
    policy.loopback.targets.push_back("test.example." + port);
    const auto sent =
        MakeOutbound(policy)->Send({.url = "http://" + host + port + "/"}, nullptr, {});
    EXPECT_EQ(Code(sent), "ok") << host << ": " << (sent ? "" : sent.error().message);
  }
}

TEST(Outbound, a_redirect_resolves_and_checks_anew) {
  TestPeer peer;
  FakeResolver rebinding({"127.0.0.1"}, {"10.0.0.7"});
  const auto outbound = MakeOutbound(Granting(peer, &rebinding));
  peer.Answer("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
  const auto sent = outbound->Send(
      {.url = "http://test.example:" + std::to_string(peer.port()) + "/"}, nullptr, {});
  EXPECT_EQ(Code(sent), "outbound.refused");
  EXPECT_EQ(rebinding.lookups, 2u);
  EXPECT_EQ(peer.connections(), 1);
}

TEST(Outbound, redirects_to_closed_addresses_and_other_schemes_are_refused) {
  TestPeer peer;
  for (const std::string to :
       {"http://127.0.0.2/", "http://localhost:1/", "//[::1]/", "file:///etc/passwd",
        "http://169.254.169.254/latest/", "ftp://93.184.216.34/", "http://a:b@93.184.216.34/"}) {
    const auto sent =
        Get(peer, "HTTP/1.1 302 Found\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(Code(sent), "outbound.refused") << to;
  }
}

TEST(Outbound, a_grant_opens_one_port_of_the_loopback_and_nothing_else) {
  TestPeer peer, other;
  const auto outbound = MakeOutbound(Granting(peer));
  EXPECT_EQ(Code(outbound->Send({.url = other.Url()}, nullptr, {})), "outbound.refused");
  FakeResolver inside({"10.1.2.3"});
  const auto sent =
      MakeOutbound(Granting(peer, &inside))
          ->Send({.url = "http://test.example:" + std::to_string(peer.port()) + "/"}, nullptr, {});
  EXPECT_EQ(Code(sent), "outbound.refused");
}

TEST(Outbound, redirects_are_followed_up_to_the_bound_or_not_at_all) {
  TestPeer peer;
  const std::string loop = "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(Code(Get(peer, loop)), "outbound.redirects");
  const auto kept = Get(peer, loop, {.follow_redirects = false});
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->status, 302);
}

TEST(Outbound, authorization_and_cookies_stay_with_the_host_they_were_for) {
  TestPeer first, second;
  const auto outbound =
      MakeOutbound({.loopback = {{"127.0.0.1:" + std::to_string(first.port()),
                                  "127.0.0.1:" + std::to_string(second.port())}}});
  second.Answer(Ok("x"));
  first.Answer("HTTP/1.1 307 Moved\r\nSet-Cookie: s=1; Domain=example.com\r\nLocation: " +
               second.Url() + "\r\nContent-Length: 0\r\n\r\n");
  const auto sent = outbound->Send(
      {.method = "POST",
       .url = first.Url(),
       .headers = {{"Authorization", "Bearer secret"}, {"Cookie", "mine=1"}, {"X-Kept", "1"}},
       .body = "payload"},
      nullptr, {});
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_NE(first.last_request().find("Bearer secret"), std::string::npos);
  const std::string at_second = second.last_request();
  EXPECT_EQ(at_second.find("secret"), std::string::npos) << at_second;
  EXPECT_EQ(at_second.find("mine=1"), std::string::npos) << at_second;
  EXPECT_EQ(at_second.find("s=1"), std::string::npos) << at_second;
  EXPECT_NE(at_second.find("X-Kept: 1"), std::string::npos) << at_second;
  EXPECT_NE(at_second.find("payload"), std::string::npos) << at_second;
}

TEST(Outbound, proxies_of_the_environment_are_not_asked) {
  TestPeer peer, proxy;
  const std::string address = proxy.Url();
  for (const char* name : {"http_proxy", "ALL_PROXY", "all_proxy"}) {
    setenv(name, address.c_str(), 1);
  }
  const auto sent = Get(peer, Ok("direct"));
  for (const char* name : {"http_proxy", "ALL_PROXY", "all_proxy"}) unsetenv(name);
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(sent->body, "direct");
  EXPECT_EQ(proxy.connections(), 0);
}

TEST(Outbound, headers_that_would_smuggle_are_refused) {
  TestPeer peer;
  for (const Field& field : std::vector<Field>{{"X", "a\r\nY: b"},
                                               {"X\r\nY", "a"},
                                               {"", "a"},
                                               {"Transfer-Encoding", "chunked"},
                                               {"Content-Length", "7"},
                                               {"X", std::string("a\0b", 3)}}) {
    EXPECT_EQ(Code(Get(peer, Ok("x"), {.headers = {field}})), "outbound.bad_request") << field.name;
  }
  EXPECT_EQ(Code(Get(peer, Ok("x"), {.method = "GET /x HTTP/1.1\r\nA: b\r\n"})),
            "outbound.bad_request");
  EXPECT_EQ(peer.connections(), 0);
}

TEST(Outbound, bodies_and_heads_beyond_the_limits_end_the_transfer) {
  TestPeer peer;
  EXPECT_EQ(Code(Get(peer, Ok(std::string(1000, 'x')), {.most_bytes = 999})), "outbound.too_large");
  EXPECT_EQ(Code(Get(peer, Ok(std::string(999, 'x')), {.most_bytes = 999})), "ok");
  std::string flood = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 20'000; ++i) flood += "X-" + std::to_string(i) + ": " + "y\r\n";
  EXPECT_EQ(Code(Get(peer, flood + "\r\n")), "outbound.too_large");
}

TEST(Outbound, silence_and_endless_bodies_end_in_time) {
  TestPeer peer;
  const auto began = std::chrono::steady_clock::now();
  OutboundRequest silent{.times = {.idle = milliseconds(150)}};
  EXPECT_EQ(Code(Get(peer, "", silent)), "outbound.timed_out");
  EXPECT_EQ(Code(Get(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", silent)),
            "outbound.timed_out");
  peer.DripForever();
  OutboundRequest endless{.times = {.idle = milliseconds(2000), .total = milliseconds(300)}};
  EXPECT_EQ(Code(Get(peer, "HTTP/1.1 200 OK\r\n\r\n", endless)), "outbound.timed_out");
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(3000));
}

TEST(Outbound, a_stop_ends_a_transfer_at_once) {
  TestPeer peer;
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(100));
    source.request_stop();
  });
  peer.Answer("");
  const auto began = std::chrono::steady_clock::now();
  const auto sent =
      MakeOutbound(Granting(peer))->Send({.url = peer.Url()}, nullptr, source.get_token());
  EXPECT_EQ(Code(sent), "outbound.stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(1000));
  EXPECT_EQ(Code(Get(peer, "", {.give_up = [] { return true; }})), "outbound.stopped");
}

TEST(Outbound, a_sink_gets_the_pieces_and_may_want_no_more) {
  TestPeer peer;
  const auto outbound = MakeOutbound(Granting(peer));
  std::string got;
  peer.Answer(Ok("data: one\n\n"));
  auto sent = outbound->Send({.url = peer.Url()},
                             [&](std::string_view piece) -> Result<bool> {
                               got += piece;
                               return true;
                             },
                             {});
  ASSERT_TRUE(sent);
  EXPECT_EQ(got, "data: one\n\n");
  EXPECT_TRUE(sent->body.empty());
  peer.DripForever();
  peer.Answer("HTTP/1.1 200 OK\r\n\r\n");
  sent = outbound->Send({.url = peer.Url()}, [](std::string_view) -> Result<bool> { return false; },
                        {});
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_TRUE(sent->cut);
  EXPECT_EQ(Code(outbound->Send({.url = peer.Url()},
                                [](std::string_view) -> Result<bool> {
                                  return Fail(errors::kOutboundBroken, "enough");
                                },
                                {})),
            "outbound.broken");
}

TEST(Outbound, mail_servers_pass_the_same_guard) {
  const auto outbound = MakeOutbound({});
  MailRequest mail{.host = "localhost", .from = "a@b.org", .recipients = {"c@d.org"}};
  EXPECT_EQ(Code(outbound->SendMail(mail, {})), "outbound.refused");
  mail.host = "169.254.169.254";
  EXPECT_EQ(Code(outbound->SendMail(mail, {})), "outbound.refused");
  for (const std::string host : {"", "a/b", "a@b", "a b", "a:1/x", "a?b", "a#b"}) {
    mail.host = host;
    EXPECT_EQ(Code(outbound->SendMail(mail, {})), "outbound.bad_request") << host;
  }
  mail.host = "example.org";
  for (const std::string address : {"", "a b@c", "a@b>\r\nRCPT TO:<x@y", "a@b\r\nDATA", "<a@b>"}) {
    mail.recipients = {address};
    EXPECT_EQ(Code(outbound->SendMail(mail, {})), "outbound.bad_request") << address;
  }
}

TEST(WebUrl, has_one_form) {
  EXPECT_EQ(NormalWebUrl("HTTP://Example.COM:80/a/../b c?q=' #f"),
            "http://example.com/b%20c?q=%27%20#f");
  EXPECT_EQ(NormalWebUrl("https://例え.jp"), "https://xn--r8jz45g.jp/");
  EXPECT_EQ(NormalWebUrl("http://0x7f.1/"), "http://127.0.0.1/");
  EXPECT_EQ(NormalWebUrl("ftp://x/"), std::nullopt);
  EXPECT_EQ(NormalWebUrl("http://a%00b/"), std::nullopt);
}

}  // namespace
}  // namespace caisson::http
