// SPDX-License-Identifier: Apache-2.0
// The body of an answer, cut as the first byte says: it is read without a crash, what comes out is
// the same wherever the body is cut, and what is read can be sent back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "json/reader.h"
#include "json/writer.h"
#include "nodes/chat_answer.h"
#include "nodes/chat_messages.h"
#include "nodes/event_stream.h"

namespace {

using caisson::nodes::ChatAnswer;

std::optional<std::string> Streamed(std::string_view body, std::size_t piece) {
  const caisson::nodes::OnDelta none;
  caisson::nodes::EventStream events(4096);
  caisson::nodes::ChunkReader chunks(none);
  for (std::size_t begin = 0; begin < body.size(); begin += piece) {
    const auto fed = events.Feed(body.substr(begin, piece),
                                 [&](std::string_view data) { return chunks.Read(data); });
    if (!fed) return std::nullopt;
  }
  const auto answer = chunks.Finish();
  if (!answer) return std::nullopt;
  const caisson::json::Value message = caisson::nodes::AiMessage(*answer);
  const auto text = caisson::json::Write(message);
  if (!text || !caisson::json::Write(caisson::nodes::ToWire("s", {message}))) std::abort();
  return *text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  // An event that is too large is noticed by the whole of it or by a part, so only answers compare.
  const auto whole = Streamed(body, body.size() + 1);
  const auto cut = Streamed(body, 1 + data[0] % 16);
  if (whole != cut) std::abort();
  if (const auto document = caisson::json::Read(body)) {
    (void)caisson::nodes::ReadCompletion(*document);
    (void)caisson::nodes::ErrorWords(*document);
  }
  return 0;
}
