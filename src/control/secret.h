// SPDX-License-Identifier: Apache-2.0
// Secrets that are shown once and kept as hashes, and ids that sort by time. All of it comes from
// the system's random numbers. The secrets have 256 random bits, so a plain SHA-256 keeps them: a
// slow hash is for what people choose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/store.h"

namespace caisson::control {

inline constexpr std::string_view kKeyPrefix = "csk_";
inline constexpr std::string_view kTokenPrefix = "cst_";
inline constexpr std::string_view kIngressPrefix = "csi_";
inline constexpr std::size_t kHintLength = 10;  // of what may be shown of a secret

// `prefix` and 43 characters of base64url.
std::string MakeSecret(std::string_view prefix);
std::string HashOf(std::string_view text);  // SHA-256 in hex

// A lower-case ULID: 26 characters, the time first.
std::string MakeUlid(store::Milliseconds now);

// Uniform in [0, bound); `bound` at least 1.
std::size_t RandomBelow(std::size_t bound);

}  // namespace caisson::control
