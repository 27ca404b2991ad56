// SPDX-License-Identifier: Apache-2.0
// caisson_compile and caisson_check_ir, as JSON.
#pragma once

#include <string_view>

#include "json/value.h"

namespace caisson::capi {

json::Object Compile(std::string_view source, std::string_view options);
json::Object CheckIr(std::string_view ir, std::string_view options);

}  // namespace caisson::capi
