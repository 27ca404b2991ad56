// SPDX-License-Identifier: Apache-2.0
// Numbers as JSON writes them, where simdjson gives no help. Pure functions.
#pragma once

#include <string_view>

namespace caisson::json {

// Of any size.
bool IsInteger(std::string_view text);

enum class Decimal { kNumber, kNotANumber, kTooLarge };

// The nearest double; numbers too close to zero for one are 0.0 or -0.0.
Decimal ReadDecimal(std::string_view text, double& number);

}  // namespace caisson::json
