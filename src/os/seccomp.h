// SPDX-License-Identifier: Apache-2.0
// Seccomp filters from rules that are data. What no rule allows kills the process. On all threads
// at once, for good. Uses libseccomp, so names that an architecture lacks are passed over.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::os {

// (argument[index] & mask) == value, on all 64 bits of the register unless the mask says less.
struct ArgumentCheck {
  unsigned index;
  std::uint64_t mask;
  std::uint64_t value;
};

struct SyscallRule {
  const char* name;
  const char* reason;                 // why a process under this filter needs it
  std::vector<ArgumentCheck> checks;  // all must hold; several rules of one name are any-of
  int fail_with = 0;                  // an errno: refuse mildly instead of allowing
};

// Requires no_new_privs (sets it otherwise). Fails with os.syscall.
Result<void> InstallAllowList(std::span<const SyscallRule> rules);

// The same rules as a program for seccomp(2), made once and loaded by processes that have no
// libseccomp. What no rule allows fails with `refuse_with`; calls of another architecture kill the
// process. Fails with os.syscall.
Result<std::vector<sock_filter>> BuildFilter(std::span<const SyscallRule> rules, int refuse_with);

}  // namespace caisson::os
