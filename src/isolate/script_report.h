// SPDX-License-Identifier: Apache-2.0
// What the guest's harness says of how a script ended. The script shares an interpreter with the
// harness and could have written it, so it counts for no more than the script's own word: a script
// may say that it raised something, and nobody else's limits or results.
#pragma once

#include <string_view>

#include "isolate/script.h"

namespace caisson::isolate {

// {"fault": "none"|"raised"|"syntax"|"exited"|"memory"|"protocol", "type", "message", "line",
//  "column", "frames": [{"line", "function"}], "traceback", "exit_code"}, as caisson_block.py sends
//  an
// error. False when it has not that form; `outcome` is then unchanged. Texts are cut at what a
// frame of a worker can carry.
bool ReadScriptReport(std::string_view text, ScriptOutcome& outcome);

}  // namespace caisson::isolate
