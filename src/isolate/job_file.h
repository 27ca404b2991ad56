// SPDX-License-Identifier: Apache-2.0
// How a job reaches a process that runs it (caisson_run.read_job).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "isolate/script.h"
#include "os/fd.h"

namespace caisson::isolate {

// A file of memory that nobody can change: `before`, then entry and the sizes of source, inputs and
// options as u64, little-endian, then these, with the inputs in the format of marshal. Fails with
// os.syscall, or as json::ToMarshal does.
Result<os::UniqueFd> MakeJobFile(std::string_view before, const ScriptJob& job);

// The most that RLIMIT_DATA leaves to the guest: a little below the cgroup's limit, so that the
// guest gets a MemoryError and not the kernel's OOM killer where that can be.
std::uint64_t DataBytes(std::uint64_t memory);

}  // namespace caisson::isolate
