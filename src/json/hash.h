// SPDX-License-Identifier: Apache-2.0
// A keyed hash (SipHash-1-3) for object keys: whoever writes a document must not be able to choose
// keys that collide. The key is drawn once per process; hashes are never stored or shown.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::json {

std::uint64_t HashKey(std::string_view key);

}  // namespace caisson::json
