// SPDX-License-Identifier: Apache-2.0
// One run of a block: the only way from a job to an outcome, for the command, the service and the
// test mode alike.
#pragma once

#include <stop_token>

#include "block/outcome.h"
#include "block/receiver.h"
#include "block/settler.h"
#include "isolate/script.h"

namespace caisson::block {

// Blocks. Whatever happens is told in the outcome.
BlockOutcome RunBlock(isolate::ScriptRuntime& runtime, const isolate::ScriptJob& job,
                      const SettleOptions& options, Receiver& receiver,
                      const std::stop_token& stop);

}  // namespace caisson::block
