// SPDX-License-Identifier: Apache-2.0
// Whether this process may have as much address space as an engine is about to reserve. Asked
// beforehand, because the engine gives up in its own words when it does not get it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// Tries to reserve `bytes` and gives them back. Fails with wasm.address_space, which says how much
// `purpose` needs, what the limit is, and what to do.
Result<void> CheckAddressSpace(std::uint64_t bytes, std::string_view purpose);

}  // namespace caisson::wasm
