// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "os/syscall_error.h"
#include "wasm/file.h"

namespace caisson::wasm {

Result<std::shared_ptr<const MemoryImage>> MemoryImage::Map(os::UniqueFd fd, std::uint64_t size) {
  const void* view = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (view == MAP_FAILED) return os::SyscallError("map a memory image");
  return std::shared_ptr<const MemoryImage>(new MemoryImage(std::move(fd), size, view));
}

Result<std::shared_ptr<const MemoryImage>> MemoryImage::Make(std::string_view bytes,
                                                             std::uint64_t size) {
  os::UniqueFd fd(memfd_create("caisson-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return os::SyscallError("memfd_create");
  CAISSON_TRY(WriteSparse(fd.get(), bytes, size));
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return os::SyscallError("seal a memory image");
  return Map(std::move(fd), size);
}

Result<std::shared_ptr<const MemoryImage>> MemoryImage::OfFile(os::UniqueFd fd) {
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return os::SyscallError("look at a memory image");
  return Map(std::move(fd), static_cast<std::uint64_t>(info.st_size));
}

MemoryImage::~MemoryImage() { munmap(const_cast<void*>(view_), size_); }

}  // namespace caisson::wasm
