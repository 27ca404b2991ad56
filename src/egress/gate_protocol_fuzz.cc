// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between helper and gate: what is taken is written alike.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/gate_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace egress = caisson::egress;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto message = egress::DecodeGateMessage(body);
  if (message && egress::EncodeGateMessage(*message).substr(4) != body) std::abort();
  return 0;
}
