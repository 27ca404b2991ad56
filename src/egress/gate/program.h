// SPDX-License-Identifier: Apache-2.0
// The program of the gate: puts up the inner half of its jail, then serves. Started by the helper
// only (egress/gate_process.h).
#pragma once

#include <string_view>

namespace caisson::egress::gate {

// `ticket`: the word that jail::Spawn appends to the command line. The exit code.
int GateMain(std::string_view ticket);

}  // namespace caisson::egress::gate
