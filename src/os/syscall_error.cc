// SPDX-License-Identifier: Apache-2.0
#include "os/syscall_error.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "errors/os.h"

namespace caisson::os {

std::string ErrnoText(int error) {
  const char* name = strerrorname_np(error);
  const char* text = strerrordesc_np(error);
  std::string out = name != nullptr ? name : "errno " + std::to_string(error);
  if (text != nullptr) out.append(" (").append(text).append(")");
  return out;
}

std::unexpected<Status> SyscallError(std::string_view what) { return SyscallError(what, errno); }

std::unexpected<Status> SyscallError(std::string_view what, int error) {
  std::string message = std::string(what) + ": " + ErrnoText(error);
  if (error != EMFILE && error != ENFILE) return Fail(errors::kOsSyscall, std::move(message));
  message += error == EMFILE ? "; raise the limit on open files (`ulimit -n`), or run less at once"
                             : "; raise fs.file-max, or run less at once";
  return Fail(errors::kOsOpenFiles, std::move(message));
}

}  // namespace caisson::os
