// SPDX-License-Identifier: Apache-2.0
// One script run in a child of a zygote, supervised from outside: the job goes in, messages and
// standard streams come out under limits, and how it ended is said here and nowhere else.
#pragma once

#include <stop_token>

#include "base/status.h"
#include "isolate/native/options.h"
#include "isolate/native/zygote.h"
#include "isolate/script.h"

namespace caisson::isolate::native {

struct CallResult {
  ScriptOutcome outcome;
  // The zygote was gone before anything of the script ran: the call may be tried with another.
  bool zygote_gone = false;
};

// Blocks. Fails with jail.unavailable when a wall of the call cannot be put up, os.syscall.
Result<CallResult> RunCall(const Zygote& zygote, const NativeOptions& options, const ScriptJob& job,
                           ScriptSink& sink, const std::stop_token& stop);

}  // namespace caisson::isolate::native
