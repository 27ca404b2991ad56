// SPDX-License-Identifier: Apache-2.0
// What the reader accepts, the writer writes, and reading that gives the same value again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "json/reader.h"
#include "json/writer.h"

namespace {

void Check(const caisson::json::Value& value, const caisson::json::WriteOptions& options) {
  auto text = caisson::json::Write(value, options);
  if (!text) std::abort();
  auto again = caisson::json::Read(*text);
  if (!again || !(*again == value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto value = caisson::json::Read(text);
  if (!value) return 0;
  Check(*value, {});
  Check(*value, {.indent = 2, .ensure_ascii = true, .sort_keys = true});
  return 0;
}
