// SPDX-License-Identifier: Apache-2.0
// Equality as JSON Schema has it: numbers by their value (1 and 1.0 are the same), all else as
// Value's own. Both functions recurse, and count what they look at, so that a caller can bound it.
#pragma once

#include <cstdint>

#include "json/value.h"

namespace caisson::json {

// Takes from `steps` one for each value compared; false when there are none left.
bool Same(const Value& a, const Value& b, std::int64_t& steps);

// Equal for values that are the same; takes from `steps` likewise. Keyed, so never to be stored.
std::uint64_t SameHash(const Value& value, std::int64_t& steps);

}  // namespace caisson::json
