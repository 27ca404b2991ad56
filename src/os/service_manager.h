// SPDX-License-Identifier: Apache-2.0
// What systemd and its like are told by a service of Type=notify (sd_notify(3)).
#pragma once

#include <string_view>

namespace caisson::os {

// "READY=1", "STOPPING=1". Sends it to the socket that NOTIFY_SOCKET names, and does nothing where
// there is none: who started us then does not wait for it. Never blocks.
void TellServiceManager(std::string_view state);

}  // namespace caisson::os
