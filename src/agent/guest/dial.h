// SPDX-License-Identifier: Apache-2.0
// A connection of the host to a port of the machine: after the first answer it is the raw bytes of
// both ways, half-closes included.
#pragma once

#include <memory>

#include "agent/guest/agent.h"
#include "agent/guest/host_connection.h"

namespace caisson::agent::guest {

std::unique_ptr<Operation> BeginDial(HostConnection& connection, const DialRequest& request);

}  // namespace caisson::agent::guest
