// SPDX-License-Identifier: Apache-2.0
// Small functions that stand in for what the guest's Python lacks or does otherwise than CPython;
// they are put into the bodies that need them. Each gives what CPython 3.12 gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::workflow::migrate {

enum class Support : std::uint8_t { kStableSorted, kRounded, kCapitalized, kMerged, kJsonText };

std::string_view SupportName(Support support);
// Its definition under that name, not indented.
std::string SupportText(Support support, std::string_view name);

}  // namespace caisson::workflow::migrate
