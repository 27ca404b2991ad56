// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <gtest/gtest.h>

#include "http/test_server.h"

namespace caisson::http {
namespace {

Client ClientOf(const TestServer& test, ClientOptions options = {}) {
  options.base_url = fmt::format("http://127.0.0.1:{}", test.port());
  return std::move(*Client::Make(std::move(options)));
}

TEST(Client, keeps_its_connection) {
  TestServer test;
  Client client = ClientOf(test);
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.Send({.path = "/small"});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "small\n");
    EXPECT_EQ(*answer->headers.Find("content-type"), "text/plain");
  }
  EXPECT_EQ(test.server->counts().connections, 1u);
}

TEST(Client, sends_bodies_and_its_own_headers) {
  TestServer test;
  Client client = ClientOf(test, {.headers = {{"X-Request-Id", "mine"}}});
  const auto answer = client.Send({.method = "POST", .path = "/echo", .body = "hello"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(*answer->headers.Find("X-Request-Id"), "mine");
  const auto empty = client.Send({.method = "POST", .path = "/echo"});
  EXPECT_EQ(empty->status, 200);
  EXPECT_EQ(client.Send({.method = "HEAD", .path = "/small"})->status, 200);
  EXPECT_EQ(client.Send({.method = "DELETE", .path = "/wait2"})->status, 404);
  const auto evil = client.Send({.path = "/small", .headers = {{"X", "a\r\nY: b"}}});
  ASSERT_FALSE(evil);
  EXPECT_EQ(evil.error().code.name, "http.misuse");
}

TEST(Client, streams_uploads_with_and_without_a_size) {
  TestServer test;
  Client client = ClientOf(test);
  constexpr std::size_t kSize = 20 << 20;
  for (const bool sized : {true, false}) {
    std::size_t left = kSize;
    ClientRequest request{.method = "PUT", .path = "/count"};
    request.upload = [&](std::span<char> into) -> Result<std::size_t> {
      const std::size_t size = std::min(left, into.size());
      std::fill_n(into.data(), size, 'x');
      left -= size;
      return size;
    };
    if (sized) request.upload_size = kSize;
    const auto answer = client.Send(request);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, fmt::format("{}\n", kSize));
  }
}

TEST(Client, streams_answers_and_can_stop_them) {
  TestServer test;
  Client client = ClientOf(test);
  std::size_t got = 0;
  const auto answer = client.Send(
      {.path = "/stream?bytes=5000000", .download = [&](std::string_view piece) -> Result<void> {
         got += piece.size();
         return {};
       }});
  ASSERT_TRUE(answer);
  EXPECT_EQ(got, 5'000'000u);
  EXPECT_EQ(answer->body, "");
  const auto stopped =
      client.Send({.path = "/drip", .download = [&](std::string_view) -> Result<void> {
                     return std::unexpected(Status{{"test.enough"}, "enough"});
                   }});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "enough");
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
  const auto refused = client.Send({.path = "/absent", .download = [&](std::string_view) {
                                      ADD_FAILURE() << "a refusal is no download";
                                      return Result<void>();
                                    }});
  EXPECT_EQ(refused->status, 404);
  EXPECT_NE(refused->body, "");
}

TEST(Client, can_be_stopped_and_times_out) {
  TestServer test;
  Client client = ClientOf(test);
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stop.request_stop();
  });
  const auto stopped = client.Send({.path = "/wait", .stop = stop.get_token()});
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code.name, "http.broken");
  const auto late = client.Send({.path = "/wait", .timeout = milliseconds(100)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code.name, "http.broken");
}

TEST(Client, tells_answers_that_are_not_whole) {
  TestServer test;
  Client client = ClientOf(test);
  for (const char* path : {"/cut", "/short"}) {
    const auto answer = client.Send({.path = path});
    ASSERT_FALSE(answer) << path;
    EXPECT_EQ(answer.error().code.name, "http.broken");
  }
}

TEST(Client, speaks_over_unix_sockets) {
  const std::string path = testing::TempDir() + "/caisson-http-client.sock";
  TestServer test({}, {{"unix:" + path, {}}});
  auto client = Client::Make({.base_url = "http://localhost", .unix_socket = path});
  ASSERT_TRUE(client);
  EXPECT_EQ(client->Send({.path = "/small"})->body, "small\n");
}

TEST(Client, tells_servers_that_cannot_be_reached) {
  auto client = Client::Make({.base_url = "http://127.0.0.1:1"});
  const auto answer = client->Send({.path = "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code.name, "http.unreachable");
  EXPECT_NE(answer.error().message.find("127.0.0.1:1"), std::string::npos);
  EXPECT_FALSE(Client::Make({.base_url = "ftp://x"}));
}

TEST(Client, encodes_what_stands_in_a_path) {
  EXPECT_EQ(PercentEncode("a/b c?ä~"), "a%2Fb%20c%3F%C3%A4~");
  TestServer test;
  Client client = ClientOf(test);
  EXPECT_EQ(client.Send({.path = "/items/" + PercentEncode("a/../b c")})->body, "a/../b c\n");
}

}  // namespace
}  // namespace caisson::http
