// SPDX-License-Identifier: Apache-2.0
// Whatever a guest sends, what is handed on is one line of JSON per frame, and the end is told once
// in such a line too. The input is a sequence of messages: kind, final, two bytes of length, text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "block/frames.h"
#include "block/settler.h"
#include "json/scanner.h"

namespace {

using namespace caisson;

void CheckLine(std::string_view line) {
  if (line.find('\n') != std::string_view::npos || !json::Scan(line)) std::abort();
}

class Checker final : public block::Receiver {
 public:
  block::Taken Take(const block::Delivery& delivery) override {
    const block::Line line = block::EncodeDelivery("r", delivery);
    CheckLine(line.head + std::string(line.body) + std::string(line.tail));
    return block::Taken::kYes;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Checker checker;
  block::Settler settler({.output_bytes = 4096, .messages = 64}, {.max_part_bytes = 16}, checker);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 4) {
    const auto kind = static_cast<isolate::MessageKind>(rest[0] & 7);
    const bool final = (rest[1] & 1) != 0;
    const std::size_t length =
        static_cast<unsigned char>(rest[2]) + 256u * static_cast<unsigned char>(rest[3]);
    rest.remove_prefix(4);
    const std::string_view text = rest.substr(0, length);
    rest.remove_prefix(text.size());
    if (!settler.Take({.kind = kind, .final = final, .text = text})) break;
  }
  isolate::ScriptOutcome ended{.fault = static_cast<isolate::Fault>(size % 12)};
  ended.message = std::string(rest);
  ended.error_type = ended.message;
  ended.traceback_text = ended.message;
  ended.line = static_cast<std::uint32_t>(size);
  CheckLine(block::EncodeEnd("r", settler.Settle(ended, (size & 1) != 0)));
  return 0;
}
