// SPDX-License-Identifier: Apache-2.0
#include "os/capability.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::os {

Result<void> EmptyBoundingSet() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return SyscallError("clear the ambient capabilities");
  }
  for (int capability = 0; capability < 64; ++capability) {
    const int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) break;  // beyond the kernel's last capability
    if (held == 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return SyscallError("drop a capability from the bounding set");
    }
  }
  return {};
}

Result<void> LockSecurebits() {
  const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) return SyscallError("lock the securebits");
  return {};
}

Result<void> SetNoNewPrivileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return SyscallError("set no_new_privs");
  return {};
}

int ClearCapabilities() noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capset, &header, data) != 0) return errno;
  if (::syscall(SYS_capget, &header, data) != 0) return errno;
  for (const auto& half : data) {
    if ((half.effective | half.permitted | half.inheritable) != 0) return EPERM;
  }
  return 0;
}

}  // namespace caisson::os
