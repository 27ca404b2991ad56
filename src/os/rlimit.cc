// SPDX-License-Identifier: Apache-2.0
#include "os/rlimit.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "os/syscall_error.h"

namespace caisson::os {

Result<void> LowerLimit(int resource, std::uint64_t value) {
  // glibc's C++ prototypes want its own enum for `resource`.
  const auto which = static_cast<__rlimit_resource_t>(resource);
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) {
    return SyscallError("read resource limit " + std::to_string(resource));
  }
  const rlim_t lowered = std::min<rlim_t>(value, limit.rlim_max);
  limit = {.rlim_cur = lowered, .rlim_max = lowered};
  if (::setrlimit(which, &limit) != 0) {
    return SyscallError("lower resource limit " + std::to_string(resource));
  }
  return {};
}

Result<std::uint64_t> RaiseSoftLimit(int resource, std::uint64_t value) {
  rlimit limit{};
  const auto kind = static_cast<__rlimit_resource_t>(resource);
  if (::getrlimit(kind, &limit) != 0) return SyscallError("getrlimit");
  if (limit.rlim_cur >= value) return limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(value, limit.rlim_max);
  if (::setrlimit(kind, &limit) != 0) return SyscallError("setrlimit");
  return limit.rlim_cur;
}

}  // namespace caisson::os
