// SPDX-License-Identifier: Apache-2.0
// Names of sandboxes: [a-z0-9]([a-z0-9-]*[a-z0-9])?, at most 22 characters; they are host names
// too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caisson::control {

inline constexpr std::size_t kMaxNameLength = 22;

bool IsName(std::string_view name, std::size_t max = kMaxNameLength);

// "quiet-otter-4f2": an adjective, an animal, and what keeps them apart.
std::string MakeName();

}  // namespace caisson::control
