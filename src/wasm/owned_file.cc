// SPDX-License-Identifier: Apache-2.0
#include "wasm/owned_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "errors/wasm.h"
#include "os/syscall_error.h"
#include "wasm/file.h"

namespace caisson::wasm {

os::UniqueFd OpenOwned(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  os::UniqueFd fd(open(path.c_str(), kFlags));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) return {};
  return fd;
}

std::optional<std::string> ReadOwned(const std::string& path, std::string_view magic) {
  const os::UniqueFd fd = OpenOwned(path);
  if (!fd.valid()) return std::nullopt;
  std::string start(magic.size(), '\0');
  if (pread(fd.get(), start.data(), start.size(), 0) != static_cast<ssize_t>(start.size()) ||
      start != magic) {
    return std::nullopt;
  }
  Result<std::string> bytes = ReadWhole(fd.get());
  if (!bytes) return std::nullopt;
  return *std::move(bytes);
}

std::unexpected<Status> CacheFailure(const std::string& directory, std::string_view why) {
  return Fail(errors::kWasmCache,
              fmt::format("The cache directory {} cannot be used: {}. Set CAISSON_CACHE_DIR to a "
                          "directory that only you can write.",
                          directory, why));
}

namespace {

template <typename Write>
Result<void> Replace(const std::string& directory, const std::string& path, const Write& write) {
  std::string temporary = path + ".XXXXXX";
  const os::UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return CacheFailure(directory, os::ErrnoText(errno));
  Result<void> written = write(fd.get());
  if (written && (fchmod(fd.get(), 0600) != 0 || rename(temporary.c_str(), path.c_str()) != 0)) {
    written = os::SyscallError((errno == EISDIR ? "replace the directory " : "replace ") + path);
  }
  if (written) return {};
  unlink(temporary.c_str());
  return CacheFailure(directory, written.error().message);
}

}  // namespace

Result<void> WriteOwned(const std::string& directory, const std::string& path,
                        std::string_view bytes) {
  return Replace(directory, path, [bytes](int fd) { return WriteWhole(fd, bytes); });
}

Result<void> WriteOwnedSparse(const std::string& directory, const std::string& path,
                              std::string_view bytes) {
  return Replace(directory, path, [bytes](int fd) { return WriteSparse(fd, bytes, bytes.size()); });
}

}  // namespace caisson::wasm
