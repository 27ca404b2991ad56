// SPDX-License-Identifier: Apache-2.0
// Reads objects of the guest's interpreter straight from its memory and writes them as JSON text.
// Nothing in the guest runs meanwhile. Trusts nothing: sizes, depth, time and addresses are
// checked, whatever the guest left there.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "isolate/micropython/guest_memory.h"
#include "isolate/runtime.h"

namespace caisson::isolate {

struct ReadLimits {
  std::uint64_t output_bytes = 0;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Why a value has no JSON text: kOutput, kWallClock or kProtocol, with a message that names the
// JSON path of the offending value.
struct ReadFault {
  Fault fault = Fault::kProtocol;
  std::string message;
};

// Tuples become arrays, bytes a string of their content; keys that are None, booleans, numbers,
// bytes or tuples become strings. Sets, functions, objects, NaN, infinities, text that is no UTF-8,
// cycles and nesting beyond 1,000 are faults.
std::expected<std::string, ReadFault> ReadJson(const GuestMemory& memory, std::uint32_t object,
                                               const ReadLimits& limits);

// Small parts of a report. Nothing when the object is not of that kind.
std::optional<std::int32_t> SmallInt(std::uint32_t object);
std::optional<std::string_view> Text(const GuestMemory& memory, std::uint32_t object);
// The item of a tuple; nothing when it is none or too short.
std::optional<std::uint32_t> TupleItem(const GuestMemory& memory, std::uint32_t object,
                                       std::uint32_t index);
std::string TypeName(const GuestMemory& memory, std::uint32_t object);
// The text of an interned string by its number; empty when there is none.
std::string_view QstrText(const GuestMemory& memory, std::uint32_t qstr);

// Length of the UTF-8 sequence of a scalar value at the start of `text`, which is not empty; 0 when
// there is none.
std::size_t Utf8SequenceLength(std::string_view text);

}  // namespace caisson::isolate
