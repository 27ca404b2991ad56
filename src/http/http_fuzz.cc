// SPDX-License-Identifier: Apache-2.0
// Feeds the bytes of one connection to the real server over a Unix socket (TCP would run out of
// ports), in pieces as the input says: HTTP/1.1, or HTTP/2 when they begin with its preface. The
// handlers read, answer, stream and upgrade. Whatever comes, the server goes on: nothing hangs,
// nothing is left over, and what it sends is well-formed as far as a stranger can tell.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/head.h"
#include "http/test_server.h"

namespace {

using caisson::http::RawClient;
using caisson::http::TestServer;
using std::chrono::milliseconds;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

caisson::http::Limits FuzzLimits() {
  caisson::http::Limits limits;
  limits.handler_threads = 8;
  limits.buffer = limits.inline_body = 16 << 10;
  limits.header_timeout = limits.idle_timeout = limits.body_timeout = milliseconds(2000);
  return limits;
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void CheckAnswer(std::string_view received) {
  if (received.empty()) return;
  const std::size_t end = caisson::http::FindHeadEnd(received);
  if (end == 0) Fail("the server sent half a head");
  if (!caisson::http::ParseResponseHead(received.substr(0, end), 100, false)) {
    Fail("the server sent a malformed head");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = fmt::format("/tmp/caisson-http-fuzz-{}.sock", getpid());
  static TestServer test(FuzzLimits(), {{"unix:" + path, {}}});
  if (size < 2) return 0;
  // The first byte says how the rest is cut, and whether it is HTTP/2.
  const std::size_t piece = (data[0] >> 1) == 0 ? size : (data[0] >> 1);
  const bool adds_preface = (data[0] & 1) != 0;
  std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool is_http2 = adds_preface || bytes.starts_with(kPreface);
  {
    RawClient client(path);
    if (!client.connected()) Fail("the server does not listen any more");
    if (adds_preface) client.Send(kPreface);
    while (!bytes.empty()) {
      const std::string_view next = bytes.substr(0, piece);
      if (!client.Send(next)) break;
      bytes.remove_prefix(next.size());
    }
    client.CloseWrite();
    while (client.More(milliseconds(20)) && client.received.size() < (1 << 20)) {
    }
    if (!is_http2) CheckAnswer(client.received);
  }
  const auto idle = [&] {
    const caisson::http::Counts counts = test.server->counts();
    return counts.exchanges == 0 && counts.connections == 0 && counts.busy_threads == 0;
  };
  for (int i = 0; !idle(); ++i) {
    if (i > 200'000) Fail("something is left over");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return 0;
}
