// SPDX-License-Identifier: Apache-2.0
// URLs of authors and of redirects: whatever is accepted has a host, and its normal form is stable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "http/outbound_guard.h"
#include "http/web_url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::http;  // NOLINT(google-build-using-namespace)
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto url = NormalWebUrl(text)) {
    if (NormalWebUrl(*url) != url) std::abort();
  }
  const auto is_whole = [](const Target& target) {
    return !target.host.empty() && target.port != 0 &&
           (target.scheme == "http" || target.scheme == "https");
  };
  if (const auto target = ReadTarget(text); target && !is_whole(*target)) std::abort();
  const auto from = ReadTarget("http://example.com/a/b?c#d");
  if (!from) std::abort();
  if (const auto target = ReadRedirect(*from, text); target && !is_whole(*target)) std::abort();
  return 0;
}
