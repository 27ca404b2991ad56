// SPDX-License-Identifier: Apache-2.0
// Any bytes from a node host, cut at any place: the same frames and messages however they are cut,
// within their bounds, and no crash.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "host/frame.h"
#include "host/message.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxBody = 4000;

void Require(bool condition) {
  if (!condition) std::abort();
}

void Bounded(const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    Require(hello->types.size() <= kMaxTypes && hello->package.size() <= kMaxNameBytes);
    for (const ServedType& type : hello->types) {
      Require(!type.name.empty() && type.name.size() <= kMaxNameBytes);
      Require(type.fields.size() <= kMaxFields);
    }
  } else if (const auto* error = std::get_if<ErrorMessage>(&message)) {
    Require(error->id >= 1 && error->id <= kMaxCallId);
    Require(error->message.size() <= kMaxSaidBytes + 3);
  } else if (const auto* log = std::get_if<LogMessage>(&message)) {
    Require(log->text.size() <= kMaxSaidBytes + 3);
  }
}

// What was seen, in order: one letter for each frame, and how it ended.
std::string Read(std::string_view bytes, std::size_t piece) {
  FrameReader reader(kMaxBody);
  std::string seen;
  while (!bytes.empty()) {
    const std::size_t count = std::min(piece, bytes.size());
    reader.Append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    std::string_view body;
    FrameReader::State state{};
    while ((state = reader.Next(body)) == FrameReader::State::kFrame) {
      Require(body.size() <= kMaxBody);
      const auto message = DecodeMessage(body);
      if (message) Bounded(*message);
      seen += message ? static_cast<char>('0' + message->index()) : 'x';
    }
    if (state == FrameReader::State::kTooLarge) return seen + "!";
  }
  return seen;
}

}  // namespace
}  // namespace caisson::host

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::host;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Require(Read(bytes, bytes.size() + 1) == Read(bytes, 1 + data[0] % 64));
  const auto message = DecodeMessage(bytes);
  if (message) Bounded(*message);
  return 0;
}
