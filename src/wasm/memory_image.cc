// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/syscall_error.h"
#include "wasm/binary.h"

namespace caisson::wasm {
namespace {

Result<void> WriteAt(int fd, std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return os::SyscallError("write a memory image");
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const MemoryImage>> MemoryImage::Fill(
    std::uint64_t size, const std::function<Result<void>(const Put&)>& fill) {
  os::UniqueFd fd(memfd_create("caisson-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return os::SyscallError("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return os::SyscallError("set the size of a memory image");
  }
  CAISSON_TRY(fill([&](std::uint64_t offset, std::string_view bytes) -> Result<void> {
    if (offset > size || bytes.size() > size - offset) {
      return os::SyscallError("write a page behind the end of a memory image", EINVAL);
    }
    return WriteAt(fd.get(), offset, bytes);
  }));
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return os::SyscallError("seal a memory image");
  const void* view = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (view == MAP_FAILED) return os::SyscallError("map a memory image");
  return std::shared_ptr<const MemoryImage>(new MemoryImage(std::move(fd), size, view));
}

Result<std::shared_ptr<const MemoryImage>> MemoryImage::Make(std::string_view bytes,
                                                             std::uint64_t size) {
  return Fill(size, [bytes](const Put& put) -> Result<void> {
    for (const Segment& segment : NonZeroSegments(bytes)) {
      CAISSON_TRY(put(segment.address, segment.bytes));
    }
    return {};
  });
}

MemoryImage::~MemoryImage() { munmap(const_cast<void*>(view_), size_); }

}  // namespace caisson::wasm
