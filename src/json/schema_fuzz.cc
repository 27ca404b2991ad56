// SPDX-License-Identifier: Apache-2.0
// A schema and a value, [schema, value] as one JSON text: compiling and checking end within their
// bounds, and the same question has the same answer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "json/reader.h"
#include "json/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pair = caisson::json::Read(text);
  if (!pair || !pair->is_array() || pair->as_array().size() != 2) return 0;
  const auto schema = caisson::json::Schema::Compile(pair->as_array()[0]);
  if (!schema) return 0;
  const caisson::json::SchemaLimits limits{.max_steps = 20000};
  const auto verdict = schema->Check(pair->as_array()[1], limits);
  const auto again = schema->Check(pair->as_array()[1], limits);
  if (verdict.has_value() != again.has_value()) std::abort();
  if (!verdict) return 0;
  if (verdict->violations != again->violations) std::abort();
  if (verdict->violations.size() > limits.max_violations) std::abort();
  if (verdict->ok() != verdict->Text().empty()) std::abort();
  return 0;
}
