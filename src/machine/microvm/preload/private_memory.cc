// SPDX-License-Identifier: Apache-2.0
// Loaded into QEMU (LD_PRELOAD). QEMU leaves memory out of what it saves only when that is a file
// which it shares with others. Ours is, but machines may not write into one another's: the file
// that CAISSON_PRIVATE_MEMORY names is opened for reading and mapped copy-on-write, whatever QEMU
// asks for. What a machine has changed of it is saved by caisson-vmm (microvm/memory.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

bool IsMemory(const char* path) {
  const char* const memory = std::getenv("CAISSON_PRIVATE_MEMORY");
  return memory != nullptr && path != nullptr && std::strcmp(path, memory) == 0;
}

bool IsMemory(int fd) {
  const char* const memory = std::getenv("CAISSON_PRIVATE_MEMORY");
  struct stat file{};
  struct stat named{};
  return memory != nullptr && fd >= 0 && ::fstat(fd, &file) == 0 && ::stat(memory, &named) == 0 &&
         file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

template <typename F>
F Next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

int OpenFlags(const char* path, int flags) {
  return IsMemory(path) ? (flags & ~(O_ACCMODE | O_CREAT)) | O_RDONLY : flags;
}

int MapFlags(int flags, int fd) {
  if ((flags & MAP_SHARED) == 0 || !IsMemory(fd)) return flags;
  return (flags & ~(MAP_SHARED | MAP_SHARED_VALIDATE)) | MAP_PRIVATE | MAP_NORESERVE;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return Next<int (*)(const char*, int, ...)>("open")(path, OpenFlags(path, flags), mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return Next<int (*)(const char*, int, ...)>("open64")(path, OpenFlags(path, flags), mode);
}

// As programs call them that were compiled with checks.
int __open_2(const char* path, int flags) {
  return Next<int (*)(const char*, int)>("__open_2")(path, OpenFlags(path, flags));
}
int __open64_2(const char* path, int flags) {
  return Next<int (*)(const char*, int)>("__open64_2")(path, OpenFlags(path, flags));
}

void* mmap(void* place, std::size_t size, int protection, int flags, int fd, off_t offset) {
  return Next<decltype(&mmap)>("mmap")(place, size, protection, MapFlags(flags, fd), fd, offset);
}

void* mmap64(void* place, std::size_t size, int protection, int flags, int fd, off64_t offset) {
  return Next<decltype(&mmap64)>("mmap64")(place, size, protection, MapFlags(flags, fd), fd,
                                           offset);
}

}  // extern "C"
