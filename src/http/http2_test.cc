// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>

#include "http/test_server.h"

namespace caisson::http {
namespace {

enum Type : std::uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPush,
  kPing,
  kGoaway,
  kWindowUpdate,
  kContinuation
};
constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Big(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t id,
                  std::string_view payload) {
  return Big(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + Big(id, 4) + std::string(payload);
}

std::string HpackLength(std::size_t size) {
  if (size < 127) return std::string(1, static_cast<char>(size));
  std::string text(1, 127);
  for (size -= 127; size >= 128; size >>= 7) text += static_cast<char>(128 | (size & 127));
  return text + static_cast<char>(size);
}

// Literals without indexing.
std::string Hpack(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0' + HpackLength(name.size()) + name + HpackLength(value.size()) + value;
  }
  return block;
}

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Answer2 {
  std::map<std::string, std::string> fields;
  std::string body;
  bool ended = false;
  std::optional<std::uint32_t> reset;
  std::string status() const { return fields.count(":status") ? fields.at(":status") : ""; }
};

// A client that makes every frame by hand.
class Client2 {
 public:
  explicit Client2(std::uint16_t port, std::string_view settings = {}) : raw(port) {
    nghttp2_hd_inflate_new(&inflater_);
    raw.Send(kPreface);
    raw.Send(Frame(kSettings, 0, 0, settings));
    while (!settled_ && Step()) {
    }
  }
  ~Client2() { nghttp2_hd_inflate_del(inflater_); }

  void Request(std::uint32_t id, std::string_view method, std::string_view path, bool ends = true,
               const Fields& more = {}) {
    Fields fields{{":method", std::string(method)},
                  {":scheme", "http"},
                  {":path", std::string(path)},
                  {":authority", "x"}};
    fields.insert(fields.end(), more.begin(), more.end());
    raw.Send(Frame(kHeaders, static_cast<std::uint8_t>(kEndHeaders | (ends ? kEndStream : 0)), id,
                   Hpack(fields)));
  }
  void Data(std::uint32_t id, std::string_view bytes, bool ends) {
    while (bytes.size() > 16384) {
      raw.Send(Frame(kData, 0, id, bytes.substr(0, 16384)));
      bytes.remove_prefix(16384);
    }
    raw.Send(Frame(kData, ends ? kEndStream : 0, id, bytes));
  }
  void Window(std::uint32_t id, std::uint32_t bytes) {
    raw.Send(Frame(kWindowUpdate, 0, id, Big(bytes, 4)));
  }

  // Takes one frame that came; false at the end.
  bool Step(milliseconds wait = milliseconds(5000)) {
    while (raw.received.size() < 9 || raw.received.size() < 9 + Length()) {
      if (!raw.More(wait)) return false;
    }
    const std::string frame = raw.received.substr(0, 9 + Length());
    raw.received.erase(0, frame.size());
    Take(static_cast<std::uint8_t>(frame[3]), static_cast<std::uint8_t>(frame[4]),
         Number(frame, 5) & 0x7fffffff, frame.substr(9));
    return true;
  }
  const Answer2& Get(std::uint32_t id) {
    while (!answers[id].ended && !answers[id].reset && Step()) {
    }
    return answers[id];
  }
  void UntilEnd() {
    while (Step()) {
    }
  }

  RawClient raw;
  std::map<std::uint32_t, Answer2> answers;
  std::optional<std::uint32_t> goaway;
  std::map<std::uint32_t, std::uint64_t> window;  // that the server gave anew
  bool grants = true;                             // gives window for what came
  int continues = 0;

 private:
  static std::uint32_t Number(std::string_view text, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<std::uint8_t>(text[at + i]);
    return value;
  }
  std::size_t Length() const { return Number(raw.received, 0) >> 8; }

  void Take(std::uint8_t type, std::uint8_t flags, std::uint32_t id, const std::string& payload) {
    if (type == kHeaders) {
      Inflate(payload, answers[id]);
    } else if (type == kData) {
      answers[id].body += payload;
      if (grants && !payload.empty()) {
        Window(0, static_cast<std::uint32_t>(payload.size()));
        Window(id, static_cast<std::uint32_t>(payload.size()));
      }
    } else if (type == kReset) {
      answers[id].reset = Number(payload, 0);
    } else if (type == kGoaway) {
      goaway = Number(payload, 4);
    } else if (type == kWindowUpdate) {
      window[id] += Number(payload, 0);
    } else if (type == kSettings && (flags & kAck) == 0) {
      raw.Send(Frame(kSettings, kAck, 0, ""));
      settled_ = true;
    }
    if ((type == kHeaders || type == kData) && (flags & kEndStream) != 0) answers[id].ended = true;
  }

  void Inflate(const std::string& payload, Answer2& answer) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(payload.data());
    std::size_t left = payload.size();
    while (true) {
      nghttp2_nv field;
      int flags = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      ASSERT_GE(used, 0);
      at += used;
      left -= static_cast<std::size_t>(used);
      if (flags & NGHTTP2_HD_INFLATE_EMIT) {
        const std::string name(reinterpret_cast<char*>(field.name), field.namelen);
        const std::string value(reinterpret_cast<char*>(field.value), field.valuelen);
        if (name == ":status" && value == "100") ++continues;
        answer.fields[name] = value;
      }
      if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
      if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && left == 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
  }

  bool settled_ = false;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

TEST(Http2, serves_many_streams_of_one_connection) {
  TestServer test;
  Client2 client(test.port());
  for (std::uint32_t id = 1; id < 101; id += 2) {
    client.Request(id, "GET", id % 4 == 1 ? "/small" : "/pooled");
  }
  for (std::uint32_t id = 1; id < 101; id += 2) {
    const Answer2& answer = client.Get(id);
    EXPECT_EQ(answer.status(), "200");
    EXPECT_EQ(answer.body, id % 4 == 1 ? "small\n" : "pooled\n");
    EXPECT_FALSE(answer.fields.at("x-request-id").empty());
  }
  EXPECT_EQ(test.server->counts().connections, 1u);
  EXPECT_TRUE(Eventually([&] { return test.seen.served == 50; }));
  EXPECT_TRUE(test.seen.last_whole);
}

TEST(Http2, takes_a_preface_that_comes_byte_by_byte) {
  TestServer test;
  RawClient raw(test.port());
  const std::string bytes = std::string(kPreface) + Frame(kSettings, 0, 0, "");
  for (const char c : bytes) {
    raw.Send({&c, 1});
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(raw.Bytes(9)[3], static_cast<char>(kSettings));
}

TEST(Http2, refuses_a_preface_that_is_not_first_and_one_that_is_wrong) {
  TestServer test;
  RawClient late(test.port());
  EXPECT_EQ(late.Get("/small").first, 200);
  late.Send(kPreface);
  EXPECT_EQ(late.Answer().first, 505);
  RawClient wrong(test.port());
  wrong.Send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
  EXPECT_EQ(wrong.Answer().first, 505);
}

TEST(Http2, reads_bodies) {
  TestServer test;
  Client2 client(test.port());
  for (const std::uint32_t id : {1u, 3u}) {
    client.Request(id, "POST", id == 1 ? "/echo" : "/inline", false);
    client.Data(id, "hel", false);
    client.Data(id, "lo", true);
    EXPECT_EQ(client.Get(id).body, "hello");
  }
  client.Request(5, "POST", "/echo", false, {{"content-length", "3"}});
  client.Data(5, "abcd", true);
  EXPECT_EQ(client.Get(5).reset, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

TEST(Http2, sends_continue_when_the_handler_reads) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "POST", "/echo", false, {{"expect", "100-continue"}});
  while (client.continues == 0 && client.Step()) {
  }
  client.Data(1, "ok", true);
  EXPECT_EQ(client.Get(1).body, "ok");
}

TEST(Http2, streams_large_answers_within_the_windows) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "GET", "/stream?bytes=3000000");
  client.Request(3, "GET", "/stream?bytes=2000000&sized=1");
  EXPECT_EQ(client.Get(1).body.size(), 3'000'000u);
  EXPECT_EQ(client.Get(3).body.size(), 2'000'000u);
  EXPECT_EQ(client.Get(3).fields.at("content-length"), "2000000");
}

TEST(Http2, a_stream_without_window_does_not_hold_up_the_others) {
  TestServer test;
  Client2 client(test.port(), Big(4, 2) + Big(0, 4));  // SETTINGS_INITIAL_WINDOW_SIZE 0
  client.Request(1, "GET", "/stream?bytes=3000000");
  client.Request(3, "GET", "/small");
  client.Window(3, 100);
  EXPECT_EQ(client.Get(3).body, "small\n");
  EXPECT_EQ(client.answers[1].body, "");
  EXPECT_EQ(test.server->counts().busy_threads, 1u);
  client.Window(1, 3'000'000);
  EXPECT_EQ(client.Get(1).body.size(), 3'000'000u);
}

TEST(Http2, bodies_are_read_only_as_fast_as_the_handler_takes_them) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "POST", "/wait", false);  // never reads
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 1; }));
  const std::size_t window = Limits().buffer;
  client.Data(1, std::string(window, 'x'), false);
  while (client.Step(milliseconds(300))) {
  }
  EXPECT_LT(client.window[1], window);  // so that at most 1.5 windows are held
  client.Request(3, "PUT", "/count", false);
  std::size_t sent = 0;
  const std::string block(16384, 'y');
  while (sent < (8u << 20)) {
    while (client.window[3] + window < sent + block.size() && client.Step()) {
    }
    client.Data(3, block, false);
    sent += block.size();
  }
  client.Data(3, "", true);
  EXPECT_EQ(client.Get(3).body, fmt::format("{}\n", sent));
}

TEST(Http2, a_client_that_ignores_the_window_is_cut_off) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "POST", "/wait", false);
  client.Data(1, std::string(2 << 20, 'x'), false);
  while (!client.answers[1].reset && !client.goaway && client.Step()) {
  }
  EXPECT_TRUE(client.answers[1].reset == NGHTTP2_FLOW_CONTROL_ERROR ||
              client.goaway == NGHTTP2_FLOW_CONTROL_ERROR);
}

TEST(Http2, tells_the_handler_when_the_stream_is_reset_or_the_client_goes) {
  TestServer test;
  {
    Client2 client(test.port());
    client.Request(1, "GET", "/wait");
    client.Request(3, "GET", "/drip");
    client.Request(5, "GET", "/wait");
    ASSERT_TRUE(Eventually([&] { return test.seen.begun == 3; }));
    client.raw.Send(Frame(kReset, 0, 1, Big(NGHTTP2_CANCEL, 4)));
    EXPECT_TRUE(Eventually([&] { return test.seen.gone == 1; }));
    client.raw.Send(Frame(kReset, 0, 3, Big(NGHTTP2_CANCEL, 4)));
    EXPECT_TRUE(Eventually([&] { return test.seen.ended == 2; }));
  }
  EXPECT_TRUE(Eventually([&] { return test.seen.ended == 3; }));
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
  EXPECT_EQ(test.server->counts().connections, 0u);
}

TEST(Http2, an_answer_that_its_handler_does_not_end_is_reset) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "GET", "/cut");
  EXPECT_EQ(client.Get(1).reset, std::uint32_t{NGHTTP2_INTERNAL_ERROR});
  EXPECT_FALSE(client.Get(1).ended);
  client.Request(3, "GET", "/small");
  EXPECT_EQ(client.Get(3).body, "small\n");
}

TEST(Http2, takes_a_body_that_nobody_wants_for_a_while_only) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "POST", "/absent", false);
  client.Request(3, "POST", "/absent", false);
  for (const std::uint32_t id : {1u, 3u}) EXPECT_EQ(client.Get(id).status(), "404");
  client.Data(1, std::string(200'000, 'x'), false);
  while (client.window[1] == 0 && client.Step()) {
  }
  EXPECT_GT(client.window[1], 0u);
  client.Data(1, "x", true);
  while (!client.answers[3].reset && client.Step()) {
  }
  EXPECT_FALSE(client.answers[1].reset);
  EXPECT_EQ(client.answers[3].reset, std::uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
}

TEST(Http2, refuses_malformed_requests) {
  TestServer test;
  Client2 client(test.port());
  std::uint32_t id = 1;
  struct Case {
    const char *method, *path;
    Fields more;
    const char* status;  // nullptr: the stream is reset
  };
  const Case cases[] = {
      {"GET", "small", {}, nullptr},
      {"GET", "/small#a", {}, "400"},
      {"GET", "/items/%zz", {}, "400"},
      {"GET", "/items/..", {}, "400"},
      {"G T", "/small", {}, nullptr},
      {"GET", "/small", {{"connection", "close"}}, nullptr},
      {"GET", "/small", {{"transfer-encoding", "chunked"}}, nullptr},
      {"GET", "/small", {{"Upper", "a"}}, nullptr},
      {"GET", "/small", {{"host", "y"}}, "400"},
      {"GET", "/small", {{"expect", "a-pony"}}, "417"},
      {"DELETE", "/small", {}, "405"},
      {"GET", "/absent", {}, "404"},
      {"POST", "/tunnel", {}, "426"},
      {"GET", "/small", {}, "200"},
  };
  for (const Case& item : cases) {
    client.Request(id, item.method, item.path, true, item.more);
    const Answer2& answer = client.Get(id);
    if (item.status) {
      EXPECT_EQ(answer.status(), item.status) << item.method << item.path;
    } else {
      EXPECT_TRUE(answer.reset || answer.status() == "400") << item.method << " " << item.path;
    }
    id += 2;
  }
}

TEST(Http2, limits_the_header) {
  TestServer test;
  Client2 client(test.port());
  Fields many;
  for (int i = 0; i < 200; ++i) many.push_back({"a", "b"});
  client.Request(1, "GET", "/small", true, many);
  EXPECT_EQ(client.Get(1).status(), "431");
  Fields large;
  for (int i = 0; i < 3; ++i) large.push_back({"a" + std::to_string(i), std::string(5000, 'x')});
  client.Request(3, "GET", "/small", true, large);
  EXPECT_EQ(client.Get(3).status(), "200");
}

TEST(Http2, limits_streams) {
  Limits limits;
  limits.streams = 4;
  TestServer test(limits);
  Client2 client(test.port());
  for (std::uint32_t id = 1; id < 13; id += 2) client.Request(id, "GET", "/hold");
  client.UntilEnd();
  EXPECT_EQ(client.goaway, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
  EXPECT_LE(test.seen.begun, 4);
}

TEST(Http2, ends_connections_that_flood) {
  TestServer test;
  const auto ends = [&](const std::function<void(Client2&)>& flood) {
    Client2 client(test.port());
    flood(client);
    client.UntilEnd();
    return client.raw.ended || client.raw.reset;
  };
  EXPECT_TRUE(ends([](Client2& client) {  // rapid reset
    for (std::uint32_t id = 1; id < 4000; id += 2) {
      client.Request(id, "GET", "/wait");
      client.raw.Send(Frame(kReset, 0, id, Big(NGHTTP2_CANCEL, 4)));
    }
  }));
  EXPECT_TRUE(ends([](Client2& client) {  // continuations without end
    client.raw.Send(Frame(kHeaders, kEndStream, 1, Hpack({{":method", "GET"}})));
    for (int i = 0; i < 1000; ++i) {
      client.raw.Send(Frame(kContinuation, 0, 1, Hpack({{"a", "b"}})));
    }
  }));
  EXPECT_TRUE(ends([](Client2& client) {  // a frame that is too large
    client.raw.Send(Frame(kHeaders, kEndHeaders, 1, std::string(20'000, 'x')));
  }));
  EXPECT_TRUE(ends([](Client2& client) {  // garbage
    client.raw.Send(std::string(1000, '\xff'));
  }));
  EXPECT_TRUE(Eventually([&] { return test.server->counts().exchanges == 0; }));
  Client2 fine(test.port());
  fine.Request(1, "GET", "/small");
  EXPECT_EQ(fine.Get(1).status(), "200");
}

TEST(Http2, pings_of_a_client_that_does_not_read_do_not_pile_up) {
  TestServer test;
  RawClient raw(test.port(), 4096);
  raw.Send(std::string(kPreface) + Frame(kSettings, 0, 0, ""));
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += Frame(kPing, 0, 0, "12345678");
  bool refused = false;
  for (int i = 0; i < 3000 && !refused; ++i) refused = !raw.Send(pings);
  EXPECT_TRUE(refused);
}

TEST(Http2, a_body_that_does_not_come_gets_408) {
  Limits limits;
  limits.body_timeout = milliseconds(200);
  TestServer test(limits);
  Client2 client(test.port());
  for (const std::uint32_t id : {1u, 3u}) {
    client.Request(id, "POST", id == 1 ? "/echo" : "/inline", false);
    EXPECT_EQ(client.Get(id).status(), "408");
  }
}

TEST(Http2, closes_idle_connections_and_headers_that_do_not_come) {
  Limits limits;
  limits.header_timeout = limits.idle_timeout = milliseconds(200);
  TestServer test(limits);
  Client2 idle(test.port()), slow(test.port());
  slow.raw.Send(Frame(kHeaders, kEndStream, 1, Hpack({{":method", "GET"}})));
  idle.UntilEnd();
  EXPECT_TRUE(idle.raw.ended);
  EXPECT_EQ(idle.goaway, std::uint32_t{NGHTTP2_NO_ERROR});
  slow.UntilEnd();
  EXPECT_TRUE(slow.raw.ended);
}

TEST(Http2, drains_gracefully) {
  TestServer test;
  Client2 client(test.port());
  client.Request(1, "GET", "/hold");
  ASSERT_TRUE(Eventually([&] { return test.seen.begun == 1; }));
  std::thread drain([&] { EXPECT_TRUE(test.server->Drain(milliseconds(5000))); });
  while (!client.goaway && client.Step()) {
  }
  test.seen.release = true;
  EXPECT_EQ(client.Get(1).body, "held\n");
  client.UntilEnd();
  EXPECT_TRUE(client.raw.ended);
  drain.join();
}

}  // namespace
}  // namespace caisson::http
