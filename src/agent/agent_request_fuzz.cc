// SPDX-License-Identifier: Apache-2.0
// Any bytes from a host, as the agent reads them: the same frames however they are cut, and
// requests that come back as the bytes they were made of.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/frames.h"
#include "agent/messages.h"

namespace caisson::agent {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Seen {
  std::vector<std::string> frames;
  FrameReader::State last = FrameReader::State::kMore;
  bool operator==(const Seen&) const = default;
};

Seen ReadInPieces(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  Seen seen;
  while (!bytes.empty()) {
    const std::size_t count = std::min(piece, bytes.size());
    bytes.copy(reader.Room(count).data(), count);
    reader.Filled(count);
    bytes.remove_prefix(count);
    Frame frame;
    while ((seen.last = reader.Next(frame)) == FrameReader::State::kFrame) {
      Require(frame.payload.size() <= MaxPayload(frame.type));
      seen.frames.push_back(static_cast<char>(frame.type) + std::string(frame.payload));
    }
    if (seen.last == FrameReader::State::kBroken) break;
  }
  return seen;
}

// There is one encoding of each message but for the order of a map's keys, which ours sorts.
template <typename M>
void Try(std::string_view payload) {
  const auto message = Decode<M>(payload);
  if (message) Require(Decode<M>(Encode(*message)) == message);
}

void TryAll(std::string_view payload) {
  Try<ExecRequest>(payload);
  Try<Command>(payload);
  Try<PutRequest>(payload);
  Try<PathRequest>(payload);
  Try<StatRequest>(payload);
  Try<ListRequest>(payload);
  Try<RemoveRequest>(payload);
  Try<ConnectRequest>(payload);
  Try<InputRequest>(payload);
  Try<ResizeRequest>(payload);
  Try<SignalRequest>(payload);
  Try<WaitRequest>(payload);
  Try<TerminateRequest>(payload);
  Try<DialRequest>(payload);
  Try<RenewRequest>(payload);
  Try<GrowDiskRequest>(payload);
  Try<MountDiskRequest>(payload);
  Try<ThawRequest>(payload);
  Try<Pty>(payload);
}

}  // namespace
}  // namespace caisson::agent

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::agent;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seen whole = ReadInPieces(bytes, bytes.size() + 1);
  Require(whole == ReadInPieces(bytes, 1 + data[0] % 64));
  for (const std::string& frame : whole.frames) TryAll(std::string_view(frame).substr(1));
  TryAll(bytes);
  return 0;
}
