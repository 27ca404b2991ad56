// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/http_requests.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::egress::gate {
namespace {

using What = HttpRequests::What;

// The hosts of all requests in the order in which they come, then how it ended: "a.test b.test |
// more". Bytes come in pieces of `step`.
std::string Hosts(std::string_view bytes, std::size_t step = 1u << 20, std::uint16_t port = 80) {
  HttpRequests requests;
  std::string hosts;
  std::string held;
  while (true) {
    const auto next = requests.Next(held, port);
    if (next.what == What::kHead) hosts += requests.host() + " ";
    held.erase(0, next.size);
    switch (next.what) {
      case What::kHead:
      case What::kBody:
        continue;
      case What::kMore:
        if (bytes.empty()) return hosts + (held.empty() ? "| end" : "| more");
        held += bytes.substr(0, step);
        bytes.remove_prefix(std::min(step, bytes.size()));
        continue;
      case What::kNoHost:
        return hosts + "| no host";
      case What::kTunnel:
        return hosts + "| tunnel";
      case What::kBad:
        return hosts + "| " + requests.why_bad();
    }
  }
}
std::string Of(const std::string& fields, const std::string& target = "/",
               const std::string& version = "HTTP/1.1") {
  return Hosts("GET " + target + " " + version + "\r\n" + fields + "\r\n");
}
constexpr const char* kAmbiguous = "| a malformed or ambiguous HTTP request";

TEST(HttpRequests, say_the_host_of_each) {
  const std::string stream =
      "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
      "POST /x HTTP/1.1\r\nHost: B.test:80\r\nContent-Length: 5\r\n\r\nhello"
      "PUT /y HTTP/1.1\r\nhost: c.test.\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;x=y\r\nhello\r\n0\r\nTrailer: z\r\n\r\n"
      "GET http://d.test/?q=http://e.test/ HTTP/1.1\r\nHost: d.test\r\n\r\n";
  for (const std::size_t step : {1, 2, 3, 17, 100, 100000}) {
    EXPECT_EQ(Hosts(stream, step), "a.test b.test c.test d.test | end") << step;
  }
}

TEST(HttpRequests, see_a_request_that_hides_behind_another) {
  const std::string hidden = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
  EXPECT_EQ(Hosts("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" + hidden), "a.test evil.test | end");
  EXPECT_EQ(Hosts("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n" + hidden),
            "a.test evil.test | end");
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n";
  EXPECT_EQ(Hosts("POST / HTTP/1.1\r\nHost: a.test\r\n" + length + "\r\n" + hidden), "a.test | end")
      << "a body is a body";
  // Where one reader would see a body and another one a request.
  for (const std::string& fields :
       {length + "Transfer-Encoding: chunked\r\n", length + "Content-Length: 0\r\n",
        std::string("Content-Length: +5\r\n"), std::string("Content-Length: 0x5\r\n"),
        std::string("Content-Length: 5, 5\r\n"), std::string("Content-Length: \r\n"),
        std::string("Transfer-Encoding: chunked, identity\r\n"),
        std::string("Transfer-Encoding: xchunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")}) {
    EXPECT_EQ(Hosts("POST / HTTP/1.1\r\nHost: a.test\r\n" + fields + "\r\n" + hidden), kAmbiguous)
        << fields;
  }
  EXPECT_EQ(Hosts("POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden),
            kAmbiguous);
  EXPECT_EQ(Hosts("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n\r\n" + hidden),
            std::string("a.test ") + kAmbiguous)
      << "an empty line between";
}

TEST(HttpRequests, end_where_the_guest_says_so) {
  const std::string hidden = "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n";
  EXPECT_EQ(Hosts("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" + hidden),
            "a.test | bytes behind the last request");
  EXPECT_EQ(Hosts("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n" + hidden),
            "a.test | bytes behind the last request");
  EXPECT_EQ(Hosts("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n" + hidden),
            "a.test b.test | end");
}

TEST(HttpRequests, take_one_host_and_one_only) {
  EXPECT_EQ(Of("Host: a.test\r\nHost: b.test\r\n"), kAmbiguous);
  EXPECT_EQ(Of("Host: a.test\r\nhOST: a.test\r\n"), kAmbiguous);
  EXPECT_EQ(Of("Host: a.test, b.test\r\n"), kAmbiguous);
  EXPECT_EQ(Of(""), kAmbiguous) << "none, in HTTP/1.1";
  EXPECT_EQ(Of("", "/", "HTTP/1.0"), "| no host");
  EXPECT_EQ(Of("Host:\r\n"), "| no host");
  EXPECT_EQ(Of("Host : a.test\r\n"), kAmbiguous);
  EXPECT_EQ(Of("Host: a.test\r\n b.test\r\n"), kAmbiguous) << "folded";
  EXPECT_EQ(Of("X: y\r\n Host: b.test\r\nHost: a.test\r\n"), kAmbiguous) << "folded";
  EXPECT_EQ(Of("Host: a.test\nX: y\r\n"), kAmbiguous) << "a bare line feed";
  EXPECT_EQ(Of("Host: a.test\rX: y\r\n"), kAmbiguous);
  EXPECT_EQ(Of(std::string("Host: a.test\0.b\r\n", 17)), kAmbiguous);
}

TEST(HttpRequests, take_the_target_and_the_host_only_when_they_agree) {
  EXPECT_EQ(Of("Host: a.test\r\n", "http://a.test/"), "a.test | end");
  EXPECT_EQ(Of("Host: A.test:80\r\n", "http://a.test"), "a.test | end");
  EXPECT_EQ(Of("Host: a.test\r\n", "http://b.test/"), "| a Host that differs from the target");
  EXPECT_EQ(Of("", "http://a.test/", "HTTP/1.0"), "a.test | end");
  EXPECT_EQ(Of("Host: a.test\r\n", "https://a.test/"),
            "| a request target of another scheme than http");
  for (const char* target : {"ftp://a.test/", "HTTP://a.test/", "http://u@a.test/", "a.test:80",
                             "//b.test/", "http:///", "*"}) {
    const std::string end = Of("Host: a.test\r\n", target);
    // A path that begins with two slashes is one.
    if (std::string_view(target) == "//b.test/") {
      EXPECT_EQ(end, "a.test | end");
    } else {
      EXPECT_TRUE(end.starts_with("|")) << target << end;
    }
  }
  EXPECT_EQ(Hosts("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"), "a.test | end");
}

TEST(HttpRequests, take_names_and_no_addresses) {
  for (const char* host : {"203.0.113.10", "203.0.113.10:80", "[2001:db8::1]", "[::1]:80", "a..b",
                           ".", "a.test..", "%61.test", "0x7f.1", "-a.test", "a.test:80:80"}) {
    EXPECT_TRUE(Of("Host: " + std::string(host) + "\r\n").starts_with("| ")) << host;
  }
  EXPECT_EQ(Of("Host: 203.0.113.10\r\n"), "| no host");
  for (const char* host : {"a.test:81", "a.test:", "a.test:080x", "a.test:65616"}) {
    EXPECT_EQ(Of("Host: " + std::string(host) + "\r\n"),
              "| a Host with another port than that of the connection")
        << host;
  }
  EXPECT_EQ(Hosts("GET / HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 100, 443), "a.test | end");
}

TEST(HttpRequests, are_no_tunnel) {
  EXPECT_EQ(Hosts("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), "| tunnel");
  EXPECT_EQ(Hosts("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n"), "| tunnel");
  EXPECT_EQ(Hosts("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "| tunnel");
  EXPECT_EQ(Hosts("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1), "| tunnel");
  EXPECT_EQ(Of("Host: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
               "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"),
            "| tunnel");
  EXPECT_EQ(Of("Host: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"), "| tunnel");
  EXPECT_EQ(Of("Host: a.test\r\nUpgrade: websocket\r\n"), "| tunnel");
  EXPECT_EQ(Hosts("PUT / HTTP/1.1\r\nHost: a.test\r\n\r\n", 1), "a.test | end") << "no preface";
}

TEST(HttpRequests, are_bounded) {
  const std::string large = "X: " + std::string(HttpRequests::kMaxHead, 'x') + "\r\n";
  EXPECT_EQ(Of("Host: a.test\r\n" + large), "| a header of more than 32 KiB");
  EXPECT_EQ(Hosts("GET / HTTP/1.1\r\n" + large, 1000), "| a header of more than 32 KiB");
  std::string many;
  for (std::size_t i = 0; i <= HttpRequests::kMaxFields; ++i) many += "X: y\r\n";
  EXPECT_EQ(Of("Host: a.test\r\n" + many), kAmbiguous);
  EXPECT_EQ(Hosts("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" +
                  std::string(2000, '0')),
            "a.test | a chunked body that is malformed");
  EXPECT_EQ(Hosts("\x16\x03\x01"), "| more");
  EXPECT_EQ(Hosts("SSH-2.0-x\r\n\r\n"), kAmbiguous);
}

}  // namespace
}  // namespace caisson::egress::gate
