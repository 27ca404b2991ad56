// SPDX-License-Identifier: Apache-2.0
#include "images/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/digest/sha256.h"
#include "errors/images.h"
#include "os/fd.h"
#include "os/syscall_error.h"
#include "os/write_all.h"

namespace caisson::images {
namespace {

// read(2) until the end or `take` returns false.
template <typename Take>
Result<void> ReadChunks(const std::string& path, int flags, Take take) {
  const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!fd.valid()) return FileError("open", path);
  std::vector<char> buffer(256u << 10);
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("read", path);
    if (count == 0 || !take(std::string_view(buffer.data(), static_cast<std::size_t>(count)))) {
      return {};
    }
  }
}

}  // namespace

std::unexpected<Status> FileError(std::string_view what, const std::string& path) {
  return Fail(errors::kImagesStore, std::string(what) + " " + path + ": " + os::ErrnoText(errno));
}

Result<std::string> ReadFile(const std::string& path, std::size_t limit) {
  std::string text;
  CAISSON_TRY(ReadChunks(path, 0, [&](std::string_view chunk) {
    text += chunk;
    return text.size() <= limit;
  }));
  if (text.size() <= limit) return text;
  return Fail(errors::kImagesStore, path + " has more than " + std::to_string(limit) + " bytes");
}

Result<void> WriteFile(const std::string& path, std::string_view text, unsigned mode) {
  const std::string draft = path + ".tmp" + std::to_string(::getpid());
  ::unlink(draft.c_str());
  {
    const os::UniqueFd fd(
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd.valid()) return FileError("create", draft);
    if ((errno = os::WriteAll(fd.get(), text)) != 0 || ::fchmod(fd.get(), mode) != 0 ||
        ::fsync(fd.get()) != 0) {
      auto failure = FileError("write", draft);
      ::unlink(draft.c_str());
      return failure;
    }
  }
  if (::rename(draft.c_str(), path.c_str()) == 0) return {};
  auto failure = FileError("replace", path);
  ::unlink(draft.c_str());
  return failure;
}

Result<std::string> DigestOfFile(const std::string& path) {
  digest::Sha256 sha256;
  CAISSON_TRY(ReadChunks(path, O_NOFOLLOW, [&](std::string_view chunk) {
    sha256.Update(chunk);
    return true;
  }));
  return sha256.Hex();
}

}  // namespace caisson::images
