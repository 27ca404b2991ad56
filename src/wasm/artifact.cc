// SPDX-License-Identifier: Apache-2.0
#include "wasm/artifact.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/digest/sha256.h"
#include "errors/wasm.h"
#include "os/fd.h"
#include "os/syscall_error.h"
#include "wasm/file.h"

namespace caisson::wasm {

namespace {

std::unexpected<Status> Unreadable(const std::string& path, std::string_view why) {
  return Fail(errors::kWasmArtifact,
              fmt::format("The artifact {} cannot be read: {}. Run ./dev setup, or set "
                          "CAISSON_DATA_DIR to the directory that holds it.",
                          path, why));
}

std::unexpected<Status> NotThePinned(const std::string& path, std::string_view sha256) {
  return Fail(errors::kWasmArtifact,
              fmt::format("The artifact {} does not have the sha256 of its pin, {}; it is not "
                          "used. Run ./dev setup to fetch it again.",
                          path, sha256));
}

}  // namespace

Result<std::string> LoadArtifact(const std::string& path, std::string_view sha256) {
  const os::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return Unreadable(path, os::ErrnoText(errno));
  Result<std::string> bytes = ReadWhole(fd.get());
  if (!bytes) return Unreadable(path, bytes.error().message);
  if (digest::Sha256Hex(*bytes) != sha256) return NotThePinned(path, sha256);
  return bytes;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MapArtifact(const std::string& path, std::string_view sha256,
                               CheckedFiles& checked) {
  const os::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return Unreadable(path, os::ErrnoText(errno));
  if (!S_ISREG(info.st_mode) || info.st_size == 0)
    return Unreadable(path, "it is empty or no file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > kMaxFileBytes) return Unreadable(path, os::ErrnoText(EFBIG));
  void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return Unreadable(path, os::ErrnoText(errno));
  MappedFile file;
  file.bytes_ = {static_cast<const char*>(at), size};
  CAISSON_ASSIGN(const bool holds, checked.Holds(fd.get(), sha256));
  if (!holds) return NotThePinned(path, sha256);
  return file;
}

}  // namespace caisson::wasm
