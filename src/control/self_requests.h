// SPDX-License-Identifier: Apache-2.0
// What machines ask for about themselves (POST 127.0.0.1:1029/self/pause and /self/delete inside of
// them), told by their agents. One thread watches all running machines.
#pragma once

#include <stop_token>

#include "control/sandboxes.h"

namespace caisson::control {

// Blocks until `stop`. A request is acted on as its owner's.
void HearSelfRequests(Sandboxes& sandboxes, const std::stop_token& stop);

}  // namespace caisson::control
