// SPDX-License-Identifier: Apache-2.0
#include "wasm/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/syscall_error.h"
#include "os/write_all.h"
#include "wasm/binary.h"

namespace caisson::wasm {

Result<std::string> ReadWhole(int fd, std::uint64_t limit) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return os::SyscallError("fstat");
  if (!S_ISREG(info.st_mode))
    return os::SyscallError("read a file that is no regular file", EINVAL);
  if (static_cast<std::uint64_t>(info.st_size) > limit) {
    return os::SyscallError("read a file of " + std::to_string(info.st_size) + " bytes", EFBIG);
  }
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::SyscallError("read");
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Result<void> WriteWhole(int fd, std::string_view bytes) {
  if (const int error = os::WriteAll(fd, bytes); error != 0)
    return os::SyscallError("write", error);
  return {};
}

Result<void> WriteSparse(int fd, std::string_view bytes, std::uint64_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return os::SyscallError("ftruncate");
  for (const Segment& segment : NonZeroSegments(bytes)) {
    std::string_view rest = segment.bytes;
    while (!rest.empty()) {
      const auto at = segment.address + (segment.bytes.size() - rest.size());
      const ssize_t put = pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return os::SyscallError("pwrite");
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  return {};
}

}  // namespace caisson::wasm
