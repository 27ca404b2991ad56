// SPDX-License-Identifier: Apache-2.0
// One script run in a spare, supervised from outside: the job goes in, messages and
// standard streams come out under limits, and how it ended is said here and nowhere else.
#pragma once

#include <optional>
#include <stop_token>

#include "base/status.h"
#include "isolate/native/options.h"
#include "isolate/native/spare.h"
#include "isolate/script.h"

namespace caisson::isolate::native {

struct CallResult {
  // Empty: the spare was gone before anything of the script ran.
  std::optional<ScriptOutcome> outcome;
  bool zygote_lost = false;
  // What is to be cleared away; its process has been killed.
  Spare ended;
};

// Blocks. Fails with jail.unavailable when a wall of the call cannot be put up, or os.syscall.
Result<CallResult> RunCall(Spare spare, const NativeOptions& options, const ScriptJob& job,
                           ScriptSink& sink, const std::stop_token& stop);

}  // namespace caisson::isolate::native
