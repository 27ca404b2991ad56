// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "nodes/cron.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto cron = caisson::nodes::Cron::Parse({reinterpret_cast<const char*>(data), size});
  if (!cron) return 0;
  constexpr std::int64_t kNow = 1'767'225'599;
  if (const auto next = cron->Next(kNow)) {
    if (*next <= kNow) std::abort();
    if (cron->Next(*next - 1) != next) std::abort();
  }
  return 0;
}
