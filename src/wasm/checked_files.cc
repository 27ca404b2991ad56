// SPDX-License-Identifier: Apache-2.0
#include "wasm/checked_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/digest/sha256.h"
#include "os/syscall_error.h"

namespace caisson::wasm {
namespace {

// Of the whole file, wherever it is read from at the moment.
Result<std::string> DigestOf(int fd) {
  digest::Sha256 sha256;
  std::vector<char> buffer(1u << 20);
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::SyscallError("read");
    if (got == 0) return sha256.Hex();
    sha256.Update({buffer.data(), static_cast<std::size_t>(got)});
    at += got;
  }
}

}  // namespace

Result<bool> CheckedFiles::Holds(int fd, std::string_view digest) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return os::SyscallError("look at a file");
  std::string stamp = fmt::format("{}:{}:{}:{}:{}.{:09}:{}.{:09}", digest, info.st_dev, info.st_ino,
                                  info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                                  info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
  if (std::ranges::find(stamps_, stamp) != stamps_.end()) return true;
  CAISSON_ASSIGN(const std::string actual, DigestOf(fd));
  if (actual != digest) return false;
  stamps_.push_back(std::move(stamp));
  return true;
}

}  // namespace caisson::wasm
