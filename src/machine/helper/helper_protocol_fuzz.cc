// SPDX-License-Identifier: Apache-2.0
// Both decoders of the helper's protocol and that of records: what they take they write alike.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "json/reader.h"
#include "machine/helper/protocol.h"
#include "machine/record.h"

namespace machine = caisson::machine;
namespace helper = caisson::machine::helper;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = helper::DecodeRequest(text)) {
    const auto again = helper::Encode(*request);
    if (!again) std::abort();
    const auto back = helper::DecodeRequest(*again);
    if (!back || *helper::Encode(*back) != *again) std::abort();
  }
  if (const auto reply = helper::DecodeReply(text)) {
    (void)helper::MachineFromJson(*reply);
    (void)helper::SnapshotFromJson(*reply);
    (void)helper::StatsFromJson(*reply);
    (void)helper::NetworkLogFromJson(*reply);
    (void)helper::CapabilitiesFromJson(*reply);
  }
  if (const auto value = caisson::json::Read(text, {.max_bytes = 1 << 20, .max_depth = 16})) {
    if (const auto record = machine::RecordFromJson(*value, "caisson-0-0")) {
      if (!machine::RecordFromJson(machine::ToJson(*record), "caisson-0-0")) std::abort();
    }
  }
  return 0;
}
