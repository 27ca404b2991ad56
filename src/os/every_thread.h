// SPDX-License-Identifier: Apache-2.0
// Runs a function on every thread of the process. Capabilities and Landlock belong to threads, and
// libraries start threads of their own; a wall that only the calling thread has is none.
#pragma once

#include <chrono>

#include "base/status.h"

namespace caisson::os {

// Calls `function(argument)` on each thread, others first (from a signal handler: it must be
// async-signal-safe), the caller last. Needs /proc. No thread may be started meanwhile. Fails when
// a thread returns not 0 (an errno), or does not answer in time. Not reentrant.
Result<void> OnEveryThread(int (*function)(void*), void* argument,
                           std::chrono::milliseconds timeout = std::chrono::milliseconds(5'000));

}  // namespace caisson::os
