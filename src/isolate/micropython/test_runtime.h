// SPDX-License-Identifier: Apache-2.0
// For tests: one executor for the whole program, and short ways to call it and to look at what it
// gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "isolate/executor.h"
#include "isolate/micropython/executor.h"

namespace caisson::isolate {

// With heaps of 1 and 8 MiB. Ends the program when it cannot be made.
Executor& TestExecutor();
// One for the artifact's probes: nothing is cut down.
Executor& OpenExecutor();

// `payload` is {"self":…,"state":…,"config":…}; parts may be left out.
Outcome Call(std::string_view source, std::string_view payload = "{}", const Limits& limits = {});
Outcome CallOn(Executor& executor, std::string_view source, std::string_view payload,
               const Limits& limits = {});

// The value as canonical JSON, or "<fault> <type>: <message>".
std::string Show(const Outcome& outcome);
std::string_view NameOf(Fault fault);

}  // namespace caisson::isolate
