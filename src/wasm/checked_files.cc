// SPDX-License-Identifier: Apache-2.0
#include "wasm/checked_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "os/syscall_error.h"
#include "wasm/sha256.h"

namespace caisson::wasm {

Result<bool> CheckedFiles::Holds(int fd, std::string_view digest) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return os::SyscallError("look at a file");
  std::string stamp = fmt::format("{}:{}:{}:{}:{}.{:09}:{}.{:09}", digest, info.st_dev, info.st_ino,
                                  info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                                  info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
  if (std::ranges::find(stamps_, stamp) != stamps_.end()) return true;
  CAISSON_ASSIGN(const std::string actual, Sha256HexOfFile(fd));
  if (actual != digest) return false;
  stamps_.push_back(std::move(stamp));
  return true;
}

}  // namespace caisson::wasm
