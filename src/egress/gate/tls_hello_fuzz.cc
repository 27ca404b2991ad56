// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TLS hello: no crash, the same end in whatever pieces it comes, and a name that it
// has is one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/gate/tls_hello.h"
#include "egress/gate_protocol.h"

namespace {

using caisson::egress::gate::TlsHello;

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = End(bytes, size + 1);
  if (End(bytes, 1) != whole || End(bytes, 13) != whole) std::abort();
  return 0;
}
