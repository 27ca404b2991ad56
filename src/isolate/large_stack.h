// SPDX-License-Identifier: Apache-2.0
// Threads with more stack than the usual one: deep recursion of the guest is recursion on the stack
// of the thread that runs it.
#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"

namespace caisson::isolate {

// Runs `work` on a thread of its own and waits for it. Fails with os.syscall when there can be no
// such thread; `work` has not run then.
Result<void> OnLargeStack(std::size_t stack_bytes, const std::function<void()>& work);

}  // namespace caisson::isolate
