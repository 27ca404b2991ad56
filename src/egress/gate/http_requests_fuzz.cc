// SPDX-License-Identifier: Apache-2.0
// Any bytes as the requests of a guest: no crash; in whatever pieces they come, the same bytes are
// let through for the same hosts; and the hosts are names.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/gate/http_requests.h"
#include "egress/gate_protocol.h"

namespace {

using caisson::egress::gate::HttpRequests;
using What = HttpRequests::What;

std::string End(std::string_view bytes, std::size_t step) {
  HttpRequests requests;
  std::string held;
  std::string end;
  std::size_t passed = 0;
  for (;;) {
    const auto next = requests.Next(held, 80);
    if (next.size > held.size()) std::abort();
    held.erase(0, next.size);
    passed += next.size;
    if (next.what == What::kHead) {
      if (next.size == 0 || !caisson::egress::IsGateName(requests.host())) std::abort();
      end += requests.host() + "@" + std::to_string(passed) + " ";
    } else if (next.what == What::kBody) {
      if (next.size == 0) std::abort();
    } else if (next.what != What::kMore) {
      return end + "refused";
    } else {
      if (bytes.empty()) return end;
      held += bytes.substr(0, step);
      bytes.remove_prefix(std::min(step, bytes.size()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 20000) return 0;  // byte by byte below
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = End(bytes, size + 1);
  if (End(bytes, 1) != whole || End(bytes, 7) != whole) std::abort();
  return 0;
}
