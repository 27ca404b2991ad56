// SPDX-License-Identifier: Apache-2.0
// Makes a module keep what it passes to one of its functions where the host can see it and the
// module's own code cannot reach it: in a global that is added and exported. Not a validator: the
// engine is; but no input makes it read outside its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// The global `export_name` (a mutable i32) is 0 until `function`, by index, is entered for the
// first time, and then its first argument of the last time. The argument must be an i32, or the
// engine refuses the module. Fails with wasm.engine when the binary does not have the form that
// this needs (a global section, an export section, no imports but functions).
Result<std::string> RecordArgument(std::string_view binary, std::uint32_t function,
                                   std::string_view export_name);

}  // namespace caisson::wasm
