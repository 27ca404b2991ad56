// SPDX-License-Identifier: Apache-2.0
// Whether a regular expression is one for the peer's engine: no look-around, no back references,
// balanced groups. A light check: what it cannot judge it lets pass.
#pragma once

#include <string>
#include <string_view>

namespace caisson::workflow::schema {

// What is wrong with `pattern`; empty when nothing was found.
std::string PatternError(std::string_view pattern);

}  // namespace caisson::workflow::schema
