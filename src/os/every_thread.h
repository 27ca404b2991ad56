// SPDX-License-Identifier: Apache-2.0
// Runs a function on every other thread of the process. Capabilities and Landlock belong to
// threads, and libraries start threads of their own; a wall that only the calling thread has is
// none.
#pragma once

#include <chrono>

#include "base/status.h"

namespace caisson::os {

// Calls `function(argument)` on each thread but the calling one, from a signal handler: it must be
// async-signal-safe, and bear being called twice. Threads that start meanwhile are found, too.
// Needs /proc. Fails when a thread returns not 0 (an errno), or does not answer in time. Not
// reentrant.
Result<void> OnOtherThreads(int (*function)(void*), void* argument,
                            std::chrono::milliseconds timeout = std::chrono::milliseconds(5'000));

}  // namespace caisson::os
