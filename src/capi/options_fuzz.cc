// SPDX-License-Identifier: Apache-2.0
// Options of every function from any bytes; what was taken is within its range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "capi/options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::capi;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const caisson::isolate::Limits most;
  (void)ReadCompileOptions(text);
  (void)ReadEngineOptions(text);
  (void)ReadResumeOptions(text);
  const auto run = ReadRunOptions(text, most);
  if (run && run->limits.memory_bytes > most.memory_bytes) std::abort();
  const auto call = ReadCallOptions(text, most);
  if (call && call->limits.heap_bytes != most.heap_bytes) std::abort();
  return 0;
}
