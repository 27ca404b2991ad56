// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TLS hello, and as what follows on one: no crash, the same end in whatever pieces
// they come, and a name that it has is one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/gate/tls_hello.h"
#include "egress/gate/tls_retry.h"
#include "egress/gate_protocol.h"

namespace {

using caisson::egress::gate::TlsHello;
using caisson::egress::gate::TlsRetry;

std::string End(std::string_view bytes, std::size_t step) {
  TlsHello hello;
  auto state = TlsHello::State::kMore;
  while (!bytes.empty() && state == TlsHello::State::kMore) {
    state = hello.Feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  if (state == TlsHello::State::kMore) return "more";
  if (state == TlsHello::State::kBad) return hello.why_bad();
  if (!hello.name().empty() && !caisson::egress::IsGateName(hello.name())) std::abort();
  return "name " + hello.name();
}

// What passes of `bytes` behind a hello of the name "a.test", once the server has said `server`.
std::string Passed(std::string_view server, std::string_view bytes, std::size_t step) {
  TlsRetry retry("a.test", 0);
  std::string held;
  std::string passed;
  for (; !server.empty(); server.remove_prefix(std::min(step, server.size()))) {
    if (retry.FromServer(server.substr(0, step)).size == 0) std::abort();
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    held += bytes.substr(0, step);
    while (!held.empty()) {
      const auto verdict = retry.FromClient(held);
      if (verdict.refused) return "refused";
      if (verdict.size > held.size()) std::abort();
      passed += held.substr(0, verdict.size);
      held.erase(0, verdict.size);
      if (verdict.size == 0) break;
    }
  }
  return passed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = End(bytes, size + 1);
  if (End(bytes, 1) != whole || End(bytes, 13) != whole) std::abort();
  // What the server says, as long as the first byte tells, and what the client does.
  if (size == 0) return 0;
  const std::size_t said = std::min<std::size_t>(data[0], size - 1);
  const std::string_view server = bytes.substr(1, said);
  const std::string_view client = bytes.substr(1 + said);
  const std::string passed = Passed(server, client, size);
  if (Passed(server, client, 1) != passed || Passed(server, client, 13) != passed) std::abort();
  return 0;
}
