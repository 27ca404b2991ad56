// SPDX-License-Identifier: Apache-2.0
// Whole files through descriptors, as the artifact and the module cache need them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// More than any artifact or compiled module has.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{512} << 20;

// Fail with os.syscall. What is no regular file, or larger than `limit`, is not read.
Result<std::string> ReadWhole(int fd, std::uint64_t limit = kMaxFileBytes);
Result<void> WriteWhole(int fd, std::string_view bytes);
// Makes an empty file `size` bytes long that begin with `bytes`; pages of zeros become holes.
Result<void> WriteSparse(int fd, std::string_view bytes, std::uint64_t size);

}  // namespace caisson::wasm
