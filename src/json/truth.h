// SPDX-License-Identifier: Apache-2.0
// Python's bool(value).
#pragma once

#include "json/value.h"

namespace caisson::json {

// False for null, false, zero of either kind and sign, and what is empty.
bool Truth(const Value& value);

}  // namespace caisson::json
