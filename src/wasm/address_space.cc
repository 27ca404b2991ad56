// SPDX-License-Identifier: Apache-2.0
#include "wasm/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "errors/wasm.h"
#include "os/syscall_error.h"

namespace caisson::wasm {
namespace {

std::string MiB(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

std::string Limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return "its address space is not limited by RLIMIT_AS";
  }
  return fmt::format("RLIMIT_AS (ulimit -v) limits it to {}", MiB(limit.rlim_cur));
}

}  // namespace

Result<void> CheckAddressSpace(std::uint64_t bytes, std::string_view purpose) {
  void* const reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved != MAP_FAILED) {
    munmap(reserved, bytes);
    return {};
  }
  return Fail(errors::kWasmAddressSpace,
              fmt::format("{} needs {} of address space, which is reserved and not used, but this "
                          "process cannot have it ({}); {}. Raise the limit, or lift it with "
                          "`ulimit -v unlimited`: memory is limited by other means.",
                          purpose, MiB(bytes), os::ErrnoText(errno), Limit()));
}

}  // namespace caisson::wasm
