// SPDX-License-Identifier: Apache-2.0
// Where the library finds what belongs to it. /proc/self/exe says nothing here: it is the program
// of whoever loaded the library.
#pragma once

#include <string>

#include "base/status.h"

namespace caisson::capi {

// The path of caisson-isolate: `given`, else beside the library, else in ../bin. Fails with
// cli.isolate_missing.
Result<std::string> IsolateProgram(const std::string& given);

// The folder with micropython/derived.wasm: `given`, else what CAISSON_DATA_DIR names (empty is
// returned), else beside the library or in ../share/caisson; empty where none of them has it, and
// the place known at build time holds.
std::string DataDirectory(const std::string& given);

}  // namespace caisson::capi
