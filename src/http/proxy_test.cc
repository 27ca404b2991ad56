// SPDX-License-Identifier: Apache-2.0
#include "http/proxy.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "http/test_server.h"

namespace caisson::http {
namespace {

using Answered = std::pair<int, std::string>;

// A guest's side of the connection, played by a test.
struct Guest {
  int fd;
  std::string received;
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool More() {
    char block[65536];
    const ssize_t got = recv(fd, block, sizeof(block), 0);
    if (got <= 0) return false;
    received.append(block, static_cast<std::size_t>(got));
    return true;
  }
  std::string Until(std::string_view text) {
    std::size_t at;
    while ((at = received.find(text)) == std::string::npos) {
      if (!More()) return "(ended) " + received;
    }
    std::string taken = received.substr(0, at + text.size());
    received.erase(0, taken.size());
    return taken;
  }
  std::string Head() { return Until("\r\n\r\n"); }
};

// A server whose /guest/… goes to `play`, and /tunnel to a raw relay to it.
class ProxyServer {
 public:
  explicit ProxyServer(std::function<void(Guest&)> play) : play_(std::move(play)) {
    Router router;
    router.Add("* /guest/{rest...}", {true, [this](Exchange& exchange) -> Result<void> {
                                        ProxyOptions options;
                                        options.port = 8080;
                                        options.target =
                                            "/" + std::string(exchange.request().Parameter("rest"));
                                        options.head_timeout = milliseconds(500);
                                        options.drop_headers = {"X-Token"};
                                        Session session(*this);
                                        return ProxyTo(exchange, session.Take(), options);
                                      }});
    router.Add("POST /tunnel", {true, [this](Exchange& exchange) -> Result<void> {
                                  CAISSON_ASSIGN(const auto stream,
                                                 exchange.Upgrade({{"Upgrade", "tcp-tunnel"}}));
                                  Session session(*this);
                                  return Relay(*stream, session.Take());
                                }});
    Options options;
    options.listeners = {{"127.0.0.1:0", {}}};
    server = std::move(*Server::Start(std::move(options), std::move(router)));
  }

  std::unique_ptr<Server> server;

 private:
  class Session {
   public:
    explicit Session(ProxyServer& owner) {
      auto pair = std::move(*os::MakeSocketPair(64 << 10));
      ours_ = std::move(pair.first);
      thread_ = std::thread([&owner, fd = std::move(pair.second)] {
        Guest guest{fd.get(), {}};
        owner.play_(guest);
      });
    }
    ~Session() { thread_.join(); }
    os::UniqueFd Take() { return std::move(ours_); }

   private:
    os::UniqueFd ours_;
    std::thread thread_;
  };

  const std::function<void(Guest&)> play_;
};

TEST(Proxy, rewrites_the_host_and_withholds_credentials) {
  std::promise<std::string> seen;
  ProxyServer proxy([&](Guest& guest) {
    seen.set_value(guest.Head());
    guest.Send(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Guest: 1\r\nConnection: X-Hop\r\n"
        "X-Hop: 1\r\nKeep-Alive: 5\r\n\r\nhello");
  });
  RawClient client(proxy.server->port());
  client.Send(
      "GET /guest/a%2Fb?c=d HTTP/1.1\r\nHost: id-8080.example\r\nAuthorization: Bearer x\r\n"
      "X-Api-Key: k\r\nX-Token: t\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
      "Accept: */*\r\nCookie: a=b\r\n\r\n");
  EXPECT_EQ(client.Answer(), Answered(200, "hello"));
  EXPECT_NE(client.head.find("X-Guest: 1\r\n"), std::string::npos);
  EXPECT_EQ(client.head.find("X-Hop"), std::string::npos);
  EXPECT_EQ(client.head.find("Keep-Alive"), std::string::npos);
  const std::string head = seen.get_future().get();
  EXPECT_EQ(head,
            "GET /a%2Fb HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\nCookie: a=b\r\n"
            "Connection: close\r\n\r\n");
}

TEST(Proxy, streams_bodies_both_ways) {
  ProxyServer proxy([](Guest& guest) {
    const std::string head = guest.Head();
    std::string body;
    if (head.find("Transfer-Encoding: chunked") != std::string::npos) {
      body = guest.Until("0\r\n\r\n");
    } else {
      const std::size_t length = std::stoul(head.substr(head.find("Content-Length: ") + 16));
      while (guest.received.size() < length && guest.More()) {
      }
      body = guest.received;
    }
    guest.Send(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.size()) + body);
  });
  RawClient client(proxy.server->port());
  const std::string body(5 << 20, 'z');
  std::thread sender([&] {
    client.Send(
        fmt::format("POST /guest/ HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.size()) +
        body);
  });
  EXPECT_EQ(client.Answer(), Answered(200, body));
  sender.join();
  client.Send(
      "POST /guest/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.Answer(), Answered(200, "3\r\nabc\r\n0\r\n\r\n"));
}

TEST(Proxy, hands_on_each_event_as_it_comes) {
  std::promise<void> go_on;
  auto may_go_on = go_on.get_future();
  ProxyServer proxy([&](Guest& guest) {
    guest.Head();
    guest.Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    may_go_on.wait();
    guest.Send("data: 2\n\n");
  });
  RawClient client(proxy.server->port());
  client.Send("GET /guest/ HTTP/1.1\r\nHost: x\r\n\r\n");
  client.Until("data: 1\n\n");
  go_on.set_value();
  EXPECT_NE(client.Until("0\r\n\r\n").find("data: 2\n\n"), std::string::npos);
}

TEST(Proxy, tells_the_guest_when_the_client_goes) {
  std::promise<void> ended;
  ProxyServer proxy([&](Guest& guest) {
    guest.Head();
    guest.Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    guest.More();  // until the connection ends
    ended.set_value();
  });
  RawClient client(proxy.server->port());
  client.Send("GET /guest/ HTTP/1.1\r\nHost: x\r\n\r\n");
  client.Until("data: 1\n\n");
  client.Close();
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(2)), std::future_status::ready);
}

TEST(Proxy, upgrades_become_raw_bytes) {
  ProxyServer proxy([](Guest& guest) {
    const std::string head = guest.Head();
    EXPECT_NE(head.find("Connection: Upgrade\r\nUpgrade: websocket\r\n"), std::string::npos)
        << head;
    EXPECT_NE(head.find("Sec-WebSocket-Key: abc\r\n"), std::string::npos) << head;
    guest.Send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: def\r\n\r\nfirst");
    guest.Send(guest.Until("ping") + "pong");
  });
  RawClient client(proxy.server->port());
  client.Send(
      "GET /guest/ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n");
  const std::string head = client.Until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 ")) << head;
  EXPECT_NE(head.find("Sec-WebSocket-Accept: def\r\n"), std::string::npos) << head;
  EXPECT_EQ(client.Bytes(5), "first");
  client.Send("ping");
  EXPECT_EQ(client.All(), "pingpong");
}

TEST(Proxy, passes_on_a_refused_upgrade) {
  ProxyServer proxy([](Guest& guest) {
    guest.Head();
    guest.Send("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno");
  });
  RawClient client(proxy.server->port());
  client.Send(
      "GET /guest/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(client.Answer(), Answered(400, "no"));
}

TEST(Proxy, passes_interim_answers_over_and_keeps_heads_bodiless) {
  ProxyServer proxy([](Guest& guest) {
    guest.Head();
    guest.Send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
  });
  RawClient client(proxy.server->port());
  client.Send("HEAD /guest/ HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.Until("\r\n\r\n").find("Content-Length: 7\r\n"), std::string::npos);
}

TEST(Proxy, what_is_no_answer_becomes_502_or_504) {
  struct Case {
    const char* answer;
    int status;
  };
  const Case cases[] = {
      {"", 502},
      {"SSH-2.0-OpenSSH\r\n\r\n", 502},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na", 502},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\na", 502},
      {"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n", 502},
      {"HTTP/1.1 200 OK\r\nX-A: b\x01\r\n\r\n", 502},
      {"HTTP/1.1 20 OK\r\n\r\n", 502},
      {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 502},
      {"HTTP/1.1 100 Continue\r\n\r\n", 502},
  };
  for (const Case& item : cases) {
    ProxyServer proxy([&](Guest& guest) {
      guest.Head();
      guest.Send(item.answer);
    });
    RawClient client(proxy.server->port());
    EXPECT_EQ(client.Get("/guest/").first, item.status) << item.answer;
  }
  ProxyServer silent([](Guest& guest) {
    guest.Head();
    guest.More();
  });
  RawClient client(silent.server->port());
  EXPECT_EQ(client.Get("/guest/").first, 504);
  ProxyServer endless([](Guest& guest) {
    guest.Send("HTTP/1.1 200 OK\r\nX: ");
    while (guest.Send(std::string(10'000, 'x'))) {
    }
  });
  RawClient other(endless.server->port());
  EXPECT_EQ(other.Get("/guest/").first, 502);
}

TEST(Proxy, an_answer_that_breaks_is_broken_off) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\nabc\r\n"}) {
    ProxyServer proxy([&](Guest& guest) {
      guest.Head();
      guest.Send(answer);
    });
    RawClient client(proxy.server->port());
    client.Send("GET /guest/ HTTP/1.1\r\nHost: x\r\n\r\n");
    client.All();
    EXPECT_TRUE(client.received.starts_with("HTTP/1.1 200")) << client.received;
    EXPECT_FALSE(client.received.ends_with("0\r\n\r\n"));
    EXPECT_TRUE(client.ended || client.reset);
  }
}

TEST(Proxy, an_answer_before_the_end_of_the_body_arrives) {
  ProxyServer proxy([](Guest& guest) {
    guest.Head();
    guest.Send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  });
  RawClient client(proxy.server->port());
  client.Send("POST /guest/ HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\nabc");
  EXPECT_EQ(client.Answer(), Answered(403, "no"));
}

TEST(Proxy, a_body_that_breaks_off_does_not_look_whole_to_the_guest) {
  std::promise<std::string> seen;
  ProxyServer proxy([&](Guest& guest) {
    (void)guest.Head();
    while (guest.More()) {
    }
    seen.set_value(guest.received);
  });
  RawClient client(proxy.server->port());
  client.Send("POST /guest/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  std::this_thread::sleep_for(milliseconds(50));
  client.Close();
  EXPECT_EQ(seen.get_future().get().find("0\r\n\r\n"), std::string::npos);
}

TEST(Proxy, relays_raw_bytes_with_half_closes) {
  ProxyServer proxy([](Guest& guest) {
    while (guest.More()) {
    }
    guest.Send("got " + std::to_string(guest.received.size()));
  });
  RawClient client(proxy.server->port());
  client.Send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp-tunnel\r\n\r\n");
  client.Until("\r\n\r\n");
  client.Send(std::string(3'000'000, 'x'));
  client.CloseWrite();
  EXPECT_EQ(client.All(), "got 3000000");
}

TEST(Proxy, a_relay_ends_when_the_guest_is_gone) {
  ProxyServer proxy([](Guest& guest) { guest.Send("bye"); });
  RawClient client(proxy.server->port());
  client.Send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp-tunnel\r\n\r\n");
  client.Until("\r\n\r\n");
  EXPECT_EQ(client.All(), "bye");
  EXPECT_TRUE(Eventually([&] { return proxy.server->counts().busy_threads == 0; }));
}

}  // namespace
}  // namespace caisson::http
