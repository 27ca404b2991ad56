// SPDX-License-Identifier: Apache-2.0
// A line of the block protocol is either refused with an answer that is one line of JSON, or gives
// a job whose texts are JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <variant>

#include "block/frames.h"
#include "block/request.h"
#include "json/scanner.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckLine(std::string_view line) {
  Require(line.find('\n') == std::string_view::npos);
  Require(caisson::json::Scan(line).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto request = block::ReadRequest(line, {});
  if (!request) {
    CheckLine(block::EncodeRefusal(request.error(), 1));
    return 0;
  }
  Require(json::Scan(line).has_value());
  const auto* run = std::get_if<block::RunRequest>(&*request);
  if (run == nullptr) return 0;
  Require(!run->id.empty() && run->id.size() <= block::kMaxIdBytes);
  Require(json::Scan(run->job.inputs)->kind == json::Value::Kind::kObject);
  Require(json::Scan(run->job.options)->kind == json::Value::Kind::kObject);
  CheckLine(block::EncodeAccepted(run->id, "cpython"));
  return 0;
}
