// SPDX-License-Identifier: Apache-2.0
#include "os/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/syscall_error.h"

namespace caisson::os {
namespace {

// The kernel's structure as of ABI 6; older headers lack its later fields. A kernel takes a shorter
// one, and one with zeros beyond what it knows.
struct RulesetAttributes {
  std::uint64_t file_system = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};
constexpr std::uint32_t kAskVersion = 1;
constexpr std::uint64_t kTcpBindAndConnect = 3;
constexpr std::uint64_t kAbstractSocketsAndSignals = 3;

struct PortRule {
  std::uint64_t access = 0;
  std::uint64_t port = 0;
};
constexpr int kPortRule = 2;
constexpr std::uint64_t kTcpConnect = 2;

// How many file rights each ABI knows: refer came with 2, truncate with 3, ioctl with 5.
constexpr int FileRights(int abi) { return abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13; }

}  // namespace

int LandlockAbi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<UniqueFd> MakeScopeRuleset() {
  const RulesetAttributes attributes{.scoped = kAbstractSocketsAndSignals};
  UniqueFd fd(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!fd.valid()) return SyscallError("landlock_create_ruleset");
  return fd;
}

Result<UniqueFd> MakeDenyAllRuleset(std::span<const std::uint16_t> connect_ports) {
  const int abi = LandlockAbi();
  if (abi == 0) return SyscallError("landlock_create_ruleset", ENOSYS);
  RulesetAttributes attributes{.file_system = (std::uint64_t{1} << FileRights(abi)) - 1};
  if (abi >= 4) attributes.network = kTcpBindAndConnect;
  if (abi >= 6) attributes.scoped = kAbstractSocketsAndSignals;
  UniqueFd fd(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!fd.valid()) return SyscallError("landlock_create_ruleset");
  if (abi < 4) return fd;  // TCP is open to it
  for (const std::uint16_t port : connect_ports) {
    const PortRule rule{kTcpConnect, port};
    if (::syscall(SYS_landlock_add_rule, fd.get(), kPortRule, &rule, 0) != 0) {
      return SyscallError("landlock_add_rule");
    }
  }
  return fd;
}

int RestrictThread(int ruleset) noexcept {
  return ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno;
}

}  // namespace caisson::os
