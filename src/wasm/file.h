// SPDX-License-Identifier: Apache-2.0
// Whole files through descriptors, as the artifact and the module cache need them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// Fail with os.syscall.
Result<std::string> ReadWhole(int fd);
Result<void> WriteWhole(int fd, std::string_view bytes);

}  // namespace caisson::wasm
