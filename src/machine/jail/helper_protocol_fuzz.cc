// SPDX-License-Identifier: Apache-2.0
// Both decoders of the helper's protocol and that of records: what they take they write alike.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "json/reader.h"
#include "machine/jail/helper_protocol.h"
#include "machine/jail/record.h"

namespace jail = caisson::machine::jail;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = jail::DecodeRequest(text)) {
    const auto again = jail::Encode(*request);
    if (!again) std::abort();
    const auto back = jail::DecodeRequest(*again);
    if (!back || *jail::Encode(*back) != *again) std::abort();
  }
  if (const auto reply = jail::DecodeReply(text)) {
    (void)jail::MachineFromJson(*reply);
    (void)jail::SnapshotFromJson(*reply);
    (void)jail::StatsFromJson(*reply);
    (void)jail::CapabilitiesFromJson(*reply);
  }
  if (const auto value = caisson::json::Read(text, {.max_bytes = 1 << 20, .max_depth = 16})) {
    if (const auto record = jail::RecordFromJson(*value, "caisson-0-0")) {
      if (!jail::RecordFromJson(jail::ToJson(*record), "caisson-0-0")) std::abort();
    }
  }
  return 0;
}
