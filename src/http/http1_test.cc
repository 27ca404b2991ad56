// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "http/test_server.h"

namespace caisson::http {
namespace {

using Answered = std::pair<int, std::string>;

TEST(Http1, serves_many_requests_on_one_connection) {
  TestServer test;
  RawClient client(test.port());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
    EXPECT_EQ(client.Get("/pooled"), Answered(200, "pooled\n"));
  }
  EXPECT_EQ(test.server->counts().connections, 1u);
  EXPECT_TRUE(Eventually([&] { return test.seen.served == 100; }));
  EXPECT_TRUE(test.seen.last_whole);
}

TEST(Http1, answers_pipelined_requests_in_their_order) {
  TestServer test;
  RawClient client(test.port());
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests +=
        fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", i % 3 == 0 ? "/pooled" : "/small");
  }
  client.Send(requests);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(client.Answer(), Answered(200, i % 3 == 0 ? "pooled\n" : "small\n")) << i;
  }
}

TEST(Http1, answers_pipelined_requests_of_a_client_that_closed_its_half) {
  TestServer test;
  RawClient client(test.port());
  client.Send("GET /small HTTP/1.1\r\nHost: x\r\n\r\nGET /pooled HTTP/1.1\r\nHost: x\r\n\r\n");
  client.CloseWrite();
  const std::string all = client.All();
  EXPECT_NE(all.find("small\n"), std::string::npos) << all;
  EXPECT_NE(all.find("pooled\n"), std::string::npos) << all;
  EXPECT_TRUE(client.ended);
}

TEST(Http1, reads_bodies_of_a_length_and_in_chunks) {
  TestServer test;
  RawClient client(test.port());
  for (const char* path : {"/echo", "/inline"}) {
    client.Send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", path));
    EXPECT_EQ(client.Answer(), Answered(200, "hello")) << path;
    client.Send(
        fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3;a=b\r\nhel\r\n002\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
                    path));
    EXPECT_EQ(client.Answer(), Answered(200, "hello")) << path;
  }
}

TEST(Http1, reads_requests_that_come_byte_by_byte) {
  TestServer test;
  RawClient client(test.port());
  for (const char c : std::string("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                                  "\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n")) {
    client.Send({&c, 1});
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(client.Answer(), Answered(200, "hello!"));
}

TEST(Http1, streams_large_bodies_both_ways) {
  TestServer test;
  RawClient client(test.port());
  constexpr std::size_t kSize = 32 << 20;
  std::thread sender([&] {
    client.Send(fmt::format("PUT /count HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", kSize));
    const std::string block(1 << 20, 'x');
    for (std::size_t i = 0; i < kSize; i += block.size()) client.Send(block);
  });
  EXPECT_EQ(client.Answer(), Answered(200, fmt::format("{}\n", kSize)));
  sender.join();
  client.Send(fmt::format("GET /stream?sized=1&bytes={} HTTP/1.1\r\nHost: x\r\n\r\n", kSize));
  EXPECT_EQ(client.Answer().second.size(), kSize);
  client.Send(fmt::format("GET /stream?bytes=100000 HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string chunked = client.Until("\r\n0\r\n\r\n");
  EXPECT_NE(chunked.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_GE(chunked.size(), 100000u);
}

TEST(Http1, echoes_while_the_body_still_comes) {
  TestServer test;
  RawClient client(test.port());
  client.Send(
      "POST /duplex HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nping\r\n");
  client.Until("4\r\nping\r\n");
  client.Send("4\r\npong\r\n0\r\n\r\n");
  EXPECT_EQ(client.Until("0\r\n\r\n"), "4\r\npong\r\n0\r\n\r\n");
  EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
}

TEST(Http1, sends_continue_when_the_handler_reads) {
  TestServer test;
  for (const char* path : {"/echo", "/inline"}) {
    RawClient client(test.port());
    client.Send(
        fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                    "Expect: 100-continue\r\n\r\n",
                    path));
    EXPECT_EQ(client.Until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n") << path;
    client.Send("ok");
    EXPECT_EQ(client.Answer(), Answered(200, "ok")) << path;
    EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
  }
}

TEST(Http1, refuses_before_the_body_of_a_client_that_waits_for_continue) {
  TestServer test;
  RawClient client(test.port());
  client.Send(
      "POST /absent HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Answer().first, 404);
  EXPECT_NE(client.head.find("Connection: close"), std::string::npos) << client.head;
  client.All();
  EXPECT_TRUE(client.ended);
}

TEST(Http1, keeps_the_connection_when_a_small_body_was_not_read) {
  TestServer test;
  RawClient client(test.port());
  client.Send("POST /absent HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.Answer().first, 404);
  client.Send("helloGET /small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.Answer(), Answered(200, "small\n"));
}

TEST(Http1, answer_to_a_large_unread_body_arrives_before_the_close) {
  TestServer test;
  RawClient client(test.port());
  std::string request = "POST /absent HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n";
  client.Send(request + std::string(3'000'000, 'x'));
  EXPECT_EQ(client.Answer().first, 404);
}

TEST(Http1, tells_the_handler_when_the_client_goes) {
  TestServer test;
  for (const char* path : {"/wait", "/drip"}) {
    const int before = test.seen.gone;
    const int begun = test.seen.begun;
    RawClient client(test.port());
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    ASSERT_TRUE(Eventually([&] { return test.seen.begun == begun + 1; }));
    const auto closed = std::chrono::steady_clock::now();
    client.Close();
    EXPECT_TRUE(Eventually([&] { return test.seen.gone + test.seen.ended > before; }));
    EXPECT_LT(std::chrono::steady_clock::now() - closed, milliseconds(300)) << path;
  }
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
  EXPECT_EQ(test.server->counts().connections, 0u);
}

TEST(Http1, tells_the_handler_when_the_client_goes_with_requests_sent_ahead) {
  TestServer test;
  RawClient client(test.port());
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(90'000, 'x'));
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 1; }));
  client.Close();
  EXPECT_TRUE(Eventually([&] { return test.seen.gone == 1; }));
}

TEST(Http1, a_slow_reader_blocks_only_its_own_handler) {
  Limits limits;
  limits.handler_threads = 8;
  TestServer test(limits);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<RawClient>(test.port(), 4096));
    slow.back()->Send("GET /stream?bytes=50000000 HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return test.server->counts().busy_threads == 4; }));
  RawClient client(test.port());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.Get("/pooled"), Answered(200, "pooled\n"));
  EXPECT_EQ(test.server->counts().busy_threads, 4u);
  slow.clear();
  EXPECT_TRUE(Eventually([&] { return test.server->counts().busy_threads == 0; }));
}

TEST(Http1, a_full_pool_answers_503_and_does_nothing) {
  Limits limits;
  limits.handler_threads = 2;
  TestServer test(limits);
  RawClient first(test.port()), second(test.port()), third(test.port());
  first.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  second.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 2; }));
  const auto refused = third.Get("/hold");
  EXPECT_EQ(refused.first, 503);
  EXPECT_NE(refused.second.find("http.busy"), std::string::npos);
  EXPECT_EQ(test.seen.begun, 2);
  EXPECT_EQ(third.Get("/small").first, 200);
  test.seen.release = true;
  EXPECT_EQ(first.Answer(), Answered(200, "held\n"));
  EXPECT_EQ(second.Answer(), Answered(200, "held\n"));
  EXPECT_EQ(third.Get("/hold"), Answered(200, "held\n"));
}

TEST(Http1, upgrades_to_raw_bytes_with_half_close) {
  TestServer test;
  RawClient client(test.port());
  client.Send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp-tunnel\r\n"
      "Content-Length: 0\r\n\r\nsent ahead");
  const std::string head = client.Until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  EXPECT_NE(head.find("Connection: Upgrade\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Upgrade: tcp-tunnel\r\n"), std::string::npos) << head;
  EXPECT_EQ(client.Bytes(10), "sent ahead");
  const std::string block(3 << 20, 'y');
  std::thread sender([&] {
    client.Send(block);
    client.CloseWrite();
  });
  EXPECT_EQ(client.Bytes(block.size()), block);
  sender.join();
  EXPECT_EQ(client.All(), "bye");
  EXPECT_TRUE(client.ended);
  EXPECT_TRUE(Eventually([&] { return test.server->counts().connections == 0; }));
}

TEST(Http1, refuses_an_upgrade_that_was_not_asked_for) {
  TestServer test;
  RawClient client(test.port());
  client.Send("POST /tunnel HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.Answer().first, 426);
  client.Send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: tcp-tunnel\r\n"
      "Content-Length: 1\r\n\r\nx");
  EXPECT_EQ(client.Answer().first, 426);
}

TEST(Http1, an_answer_that_its_handler_does_not_end_is_cut_off) {
  TestServer test;
  for (const char* path : {"/cut", "/short"}) {
    RawClient client(test.port());
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    client.All();
    EXPECT_TRUE(client.received.starts_with("HTTP/1.1 200 OK\r\n")) << client.received;
    EXPECT_FALSE(client.received.ends_with("0\r\n\r\n")) << path;
    EXPECT_TRUE(client.ended || client.reset) << path;
  }
  EXPECT_TRUE(Eventually([&] { return test.seen.served == 2; }));
  EXPECT_FALSE(test.seen.last_whole);
}

TEST(Http1, handlers_without_an_answer_and_with_broken_fields_get_500) {
  TestServer test;
  RawClient client(test.port());
  EXPECT_EQ(client.Get("/nothing").first, 500);
  EXPECT_EQ(client.Get("/split").first, 500);
  EXPECT_EQ(client.head.find("X-Evil"), std::string::npos);
}

TEST(Http1, head_requests_get_no_body) {
  TestServer test;
  RawClient client(test.port());
  for (const char* path : {"/small", "/pooled", "/stream?bytes=70000&sized=1", "/stream?bytes=9"}) {
    client.Send(fmt::format("HEAD {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    EXPECT_TRUE(client.Until("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n")) << path;
  }
  EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
}

TEST(Http1, serves_http_1_0) {
  TestServer test;
  RawClient once(test.port());
  once.Send("GET /stream?bytes=5 HTTP/1.0\r\n\r\n");
  const std::string all = once.All();
  EXPECT_TRUE(all.ends_with("Connection: close\r\n\r\nabcde")) << all;
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  RawClient kept(test.port());
  for (int i = 0; i < 2; ++i) {
    kept.Send("GET /small HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(kept.Answer(), Answered(200, "small\n"));
  }
}

TEST(Http1, closes_when_the_client_asks_for_it) {
  TestServer test;
  RawClient client(test.port());
  client.Send("GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.All().ends_with("small\n"));
  EXPECT_TRUE(client.ended);
}

TEST(Http1, request_ids_are_taken_when_they_are_sane) {
  TestServer test;
  RawClient client(test.port());
  client.Send("GET /small HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc-1\r\n\r\n");
  client.Answer();
  EXPECT_NE(client.head.find("X-Request-Id: abc-1\r\n"), std::string::npos) << client.head;
  client.Send("GET /small HTTP/1.1\r\nHost: x\r\nX-Request-Id: a<b>\r\n\r\n");
  client.Answer();
  EXPECT_EQ(client.head.find("a<b>"), std::string::npos) << client.head;
  EXPECT_NE(client.head.find("X-Request-Id: "), std::string::npos) << client.head;
}

TEST(Http1, takes_the_absolute_form_of_a_target) {
  TestServer test;
  RawClient client(test.port());
  EXPECT_EQ(client.Get("http://elsewhere/items/a"), Answered(200, "a\n"));
}

struct Malformed {
  const char* name;
  const char* request;
  int status;
};

const Malformed kMalformed[] = {
    {"no version", "GET /small\r\nHost: x\r\n\r\n", 400},
    {"version 0.9", "GET /small HTTP/0.9\r\nHost: x\r\n\r\n", 505},
    {"version 2.0", "GET /small HTTP/2.0\r\nHost: x\r\n\r\n", 505},
    {"two spaces", "GET  /small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"tab in the first line", "GET\t/small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"space before the method", " GET /small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"method with a bracket", "G(T /small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"long method", "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"target without slash", "GET small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"target with fragment", "GET /small#a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"target with high byte", "GET /sm\xc3\xa4ll HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"target with control", "GET /sm\x01ll HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"target for proxies", "CONNECT host:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"asterisk of GET", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"half a percent code", "GET /items/%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"wrong percent code", "GET /items/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"encoded NUL", "GET /items/%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"dot segment", "GET /items/../small HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"encoded dot segment", "GET /items/%2e%2E HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"wrong percent code in the query", "GET /small?a=%q HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"no Host", "GET /small HTTP/1.1\r\n\r\n", 400},
    {"two Hosts", "GET /small HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
    {"Host with a path", "GET /small HTTP/1.1\r\nHost: x/y\r\n\r\n", 400},
    {"Host with user info", "GET /small HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
    {"bare LF at the end of a line", "GET /small HTTP/1.1\nHost: x\r\n\r\n", 400},
    {"bare LF everywhere", "GET /small HTTP/1.1\nHost: x\n\n", 400},
    {"bare CR in a value", "GET /small HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400},
    {"folded field", "GET /small HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400},
    {"folded first field", "GET /small HTTP/1.1\r\n Host: x\r\n\r\n", 400},
    {"space before the colon", "GET /small HTTP/1.1\r\nHost : x\r\n\r\n", 400},
    {"no colon", "GET /small HTTP/1.1\r\nHost: x\r\nabc\r\n\r\n", 400},
    {"empty name", "GET /small HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", 400},
    {"control in a value", "GET /small HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n", 400},
    {"DEL in a value", "GET /small HTTP/1.1\r\nHost: x\r\nA: b\x7f\r\n\r\n", 400},
    {"length and coding",
     "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\n",
     400},
    {"coding and length",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n"
     "0\r\n\r\n",
     400},
    {"two lengths",
     "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
     400},
    {"two equal lengths",
     "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400},
    {"list of lengths", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 4\r\n\r\nabcd",
     400},
    {"signed length", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd", 400},
    {"negative length", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: -4\r\n\r\nabcd", 400},
    {"hexadecimal length", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 0x4\r\n\r\n", 400},
    {"length with a space", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 4 4\r\n\r\n", 400},
    {"empty length", "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", 400},
    {"huge length",
     "POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
    {"gzip before chunked",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
    {"chunked twice",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
     501},
    {"two codings",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "identity\r\n\r\n0\r\n\r\n",
     501},
    {"coding that only looks chunked",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
    {"coding with a vertical tab",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 400},
    {"coding of HTTP/1.0",
     "POST /inline HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"other expectation", "GET /small HTTP/1.1\r\nHost: x\r\nExpect: a-pony\r\n\r\n", 417},
    {"chunk without size",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n",
     400},
    {"chunk size with a space",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
     400},
    {"chunk size with 0x",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", 400},
    {"chunk size that overflows",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000003\r\na",
     400},
    {"chunk size with a bare LF",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
     400},
    {"chunk longer than its size",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
     400},
    {"chunk that ends with a bare LF",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n",
     400},
    {"malformed trailer",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na b: c\r\n\r\n",
     400},
    {"folded trailer",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\r\n "
     "c\r\n\r\n",
     400},
    {"length in a trailer",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\nContent-Length: 4\r\n\r\n",
     400},
    {"coding in a trailer",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\nTransfer-Encoding: chunked\r\n\r\n",
     400},
    {"chunk extension without a name",
     "POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
     "3;=a\r\nabc\r\n0\r\n\r\n",
     400},
    {"a list of connections that is none",
     "GET /small HTTP/1.1\r\nHost: x\r\nConnection: a b\r\n\r\n", 400},
    {"a TLS hello", "\x16\x03\x01\x02", 400},
};

TEST(Http1, refuses_what_is_malformed_and_closes) {
  TestServer test;
  for (const Malformed& item : kMalformed) {
    RawClient client(test.port());
    client.Send(item.request);
    EXPECT_EQ(client.Answer().first, item.status) << item.name << "\n" << client.head;
    if (client.head.find("Connection: close") == std::string::npos) {
      // What was wrong lay in the path: the connection goes on.
      EXPECT_EQ(client.Get("/small").first, 200) << item.name;
      continue;
    }
    client.All();
    EXPECT_TRUE(client.ended) << item.name;
    EXPECT_EQ(client.received, "") << item.name;
  }
}

TEST(Http1, malformed_chunks_fail_the_handler_that_reads_them) {
  TestServer test;
  RawClient client(test.port());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n");
  EXPECT_EQ(client.Answer().first, 400);
  EXPECT_NE(client.head.find("Connection: close"), std::string::npos) << client.head;
}

TEST(Http1, limits_the_header) {
  TestServer test;
  RawClient bytes(test.port());
  bytes.Send("GET /small HTTP/1.1\r\nHost: x\r\nA: " + std::string(40'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(bytes.Answer().first, 431);
  RawClient endless(test.port());
  endless.Send("GET /" + std::string(40'000, 'a'));
  EXPECT_EQ(endless.Answer().first, 431);
  RawClient fields(test.port());
  std::string many = "GET /small HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 200; ++i) many += "A: b\r\n";
  fields.Send(many + "\r\n");
  EXPECT_EQ(fields.Answer().first, 431);
}

TEST(Http1, limits_bodies) {
  Limits limits;
  limits.inline_body = 1000;
  TestServer test(limits);
  const std::string body(2000, 'x');
  RawClient sized(test.port());
  sized.Send("POST /inline HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" + body);
  EXPECT_EQ(sized.Answer().first, 413);
  RawClient chunked(test.port());
  chunked.Send("POST /inline HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
               body + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.Answer().first, 413);
  RawClient large(test.port());
  large.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n" +
             std::string(5'000'000, 'x'));
  EXPECT_EQ(large.Answer().first, 413);
}

Limits QuickLimits() {
  Limits limits;
  limits.header_timeout = limits.body_timeout = limits.write_timeout = milliseconds(200);
  limits.idle_timeout = milliseconds(300);
  return limits;
}

TEST(Http1, slow_heads_get_408_and_idle_connections_are_closed) {
  TestServer test(QuickLimits());
  RawClient idle(test.port()), slow(test.port());
  slow.Send("GET /small HTTP/1.1\r\n");
  for (int i = 0; i < 15; ++i) {  // a byte now and then does not help
    slow.Send("A");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(slow.Answer().first, 408);
  slow.All();
  EXPECT_TRUE(slow.ended);
  idle.All(milliseconds(1000));
  EXPECT_TRUE(idle.ended);
  slow.Close();
  EXPECT_TRUE(Eventually([&] { return test.server->counts().connections == 0; }));
}

TEST(Http1, slow_bodies_get_408) {
  TestServer test(QuickLimits());
  for (const char* path : {"/echo", "/inline"}) {
    RawClient client(test.port());
    client.Send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", path));
    EXPECT_EQ(client.Answer().first, 408) << path;
  }
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
}

TEST(Http1, bodies_that_drip_get_408) {
  TestServer test(QuickLimits());
  RawClient client(test.port());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  for (int i = 0; i < 60; ++i) {
    client.Send("a");
    if (client.More(milliseconds(20))) break;
  }
  EXPECT_EQ(client.Answer().first, 408);
}

TEST(Http1, a_client_that_takes_nothing_is_given_up) {
  TestServer test(QuickLimits());
  RawClient client(test.port(), 4096);
  client.Send("GET /stream?bytes=100000000 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return test.seen.ended == 1; }));
  EXPECT_TRUE(Eventually([&] { return test.server->counts().connections == 0; }));
}

TEST(Http1, limits_connections) {
  Limits limits;
  limits.connections = 3;
  TestServer test(limits);
  RawClient a(test.port()), b(test.port()), c(test.port());
  EXPECT_EQ(a.Get("/small").first, 200);
  EXPECT_EQ(b.Get("/small").first, 200);
  EXPECT_EQ(c.Get("/small").first, 200);
  RawClient d(test.port());
  EXPECT_TRUE(d.All().starts_with("HTTP/1.1 503 ")) << d.received;
  a.Close();
  ASSERT_TRUE(Eventually([&] { return test.server->counts().connections == 2; }));
  RawClient e(test.port());
  EXPECT_EQ(e.Get("/small").first, 200);
}

TEST(Http1, drains_gracefully) {
  TestServer test;
  RawClient idle(test.port()), busy(test.port());
  EXPECT_EQ(idle.Get("/small").first, 200);
  busy.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 1; }));
  std::thread drain([&] { EXPECT_TRUE(test.server->Drain(milliseconds(5000))); });
  idle.All();
  EXPECT_TRUE(idle.ended);
  RawClient late(test.port());
  EXPECT_FALSE(late.connected());
  test.seen.release = true;
  EXPECT_EQ(busy.Answer(), Answered(200, "held\n"));
  EXPECT_NE(busy.head.find("Connection: close"), std::string::npos);
  drain.join();
}

TEST(Http1, breaks_off_what_does_not_end_in_time) {
  TestServer test;
  RawClient busy(test.port()), waiting(test.port());
  busy.Send("GET /drip HTTP/1.1\r\nHost: x\r\n\r\n");
  waiting.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 2; }));
  EXPECT_FALSE(test.server->Drain(milliseconds(100)));
  EXPECT_TRUE(Eventually([&] { return test.seen.ended == 2; }));
}

TEST(Http1, listens_on_unix_sockets) {
  const std::string path = testing::TempDir() + "/caisson-http-test.sock";
  {
    TestServer test({}, {{"unix:" + path, {}, 0600}});
    RawClient client(path);
    EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
    auto second = Server::Start({{{"unix:" + path, {}}}}, Router());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code.name, "http.listen");
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Http1, leaves_no_unix_socket_behind_when_it_cannot_start) {
  const std::string path = testing::TempDir() + "/caisson-http-half.sock";
  EXPECT_FALSE(Server::Start({{{"unix:" + path, {}}, {"nonsense", {}}}}, Router()));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Http1, replaces_a_stale_unix_socket_but_no_other_file) {
  const std::string path = testing::TempDir() + "/caisson-http-stale.sock";
  unlink(path.c_str());
  {
    const os::UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    ASSERT_EQ(bind(stale.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  }
  {
    TestServer test({}, {{"unix:" + path, {}}});
  }
  std::ofstream(path) << "precious";
  EXPECT_FALSE(Server::Start({{{"unix:" + path, {}}}}, Router()));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  unlink(path.c_str());
}

TEST(Http1, serves_on_several_io_threads) {
  TestServer test({}, {{"127.0.0.1:0", {}}}, 4);
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      RawClient client(test.port());
      for (int n = 0; n < 50; ++n) {
        EXPECT_EQ(client.Get("/pooled"), Answered(200, "pooled\n"));
        EXPECT_EQ(client.Get("/small"), Answered(200, "small\n"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(Http1, tells_addresses_that_cannot_be_listened_on) {
  for (const char* address : {"nonsense", "127.0.0.1:notaport", "203.0.113.1:1",
                              "unix:", "unix:/no/such/folder/socket"}) {
    const auto server = Server::Start({{{address, {}}}}, Router());
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code.name, "http.listen");
    EXPECT_NE(server.error().message.find(address), std::string::npos);
  }
}

}  // namespace
}  // namespace caisson::http
