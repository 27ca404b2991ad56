// SPDX-License-Identifier: Apache-2.0
// How the parts of the gateway say that a machine's network is gone.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "base/status.h"
#include "errors/egress.h"

namespace caisson::egress {

inline std::unexpected<Status> NoNetwork(std::uint32_t index) {
  return Fail(errors::kEgressNoNetwork,
              fmt::format("the network {} is not there, or not whole; destroy its machine", index));
}

}  // namespace caisson::egress
