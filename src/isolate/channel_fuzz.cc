// SPDX-License-Identifier: Apache-2.0
// Any bytes from a guest, cut at any place: frames within the bound, the same ones however the
// bytes are cut, and an end for good at what is none.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "isolate/channel.h"

namespace caisson::isolate {
namespace {

constexpr std::uint64_t kMaxPayload = 1000;

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Seen {
  std::vector<std::string> frames;
  ChannelReader::State last = ChannelReader::State::kMore;
  bool operator==(const Seen&) const = default;
};

Seen ReadInPieces(std::string_view bytes, std::size_t piece) {
  ChannelReader reader;
  Seen seen;
  while (!bytes.empty()) {
    const std::size_t count = std::min(piece, bytes.size());
    reader.Append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    ChannelFrame frame;
    while ((seen.last = reader.Next(kMaxPayload, frame)) == ChannelReader::State::kFrame) {
      Require(frame.payload.size() <= kMaxPayload);
      seen.frames.push_back(std::string(frame.payload) + static_cast<char>(frame.kind) +
                            (frame.final ? '1' : '0'));
    }
    if (seen.last != ChannelReader::State::kMore) break;
  }
  return seen;
}

}  // namespace
}  // namespace caisson::isolate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::isolate;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Require(ReadInPieces(bytes, bytes.size() + 1) == ReadInPieces(bytes, 1 + data[0] % 64));
  return 0;
}
