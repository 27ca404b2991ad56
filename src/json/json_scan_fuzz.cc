// SPDX-License-Identifier: Apache-2.0
// The scanner and the translation to marshal accept what the reader accepts. The scanner says the
// same of what it refuses, and the children that it tells are values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "json/marshal.h"
#include "json/reader.h"
#include "json/scanner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::json;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = Read(text);
  std::size_t count = 0;
  const auto report = Scan(text, {}, [&](const ScannedChild& child) {
    ++count;
    return Read(child.text).has_value() || (std::abort(), false);
  });
  if (report.has_value() != value.has_value()) std::abort();
  if (ToMarshal(text).has_value() != value.has_value()) std::abort();
  if (!report && report.error().message != value.error().message) std::abort();
  if (value && value->is_array() && value->as_array().size() != count) std::abort();
  return 0;
}
