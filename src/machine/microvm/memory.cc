// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <vector>

#include "errors/machine.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kBufferBytes = 1u << 20;
// Of an entry of the page map (Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
};

Result<std::vector<Mapping>> MappingsOf(pid_t process, const std::string& file) {
  CAISSON_ASSIGN(const std::string maps,
                 os::ReadSmallFile("/proc/" + std::to_string(process) + "/maps", 16u << 20));
  std::vector<Mapping> mappings;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(" " + file)) continue;
    unsigned long begin = 0;
    unsigned long end = 0;
    unsigned long offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3) {
      mappings.push_back({begin, end, offset});
    }
  }
  if (mappings.empty()) return Fail(errors::kMachineVmFailed, "QEMU has not mapped " + file);
  return mappings;
}

class Copier {
 public:
  Copier(pid_t process, int page_map, int to)
      : process_(process), page_map_(page_map), to_(to), buffer_(kBufferBytes) {}

  Result<void> Copy(const Mapping& mapping) {
    std::vector<std::uint64_t> entries(kBufferBytes / sizeof(std::uint64_t));
    for (std::uint64_t at = mapping.begin; at < mapping.end;) {
      const std::size_t pages = std::min<std::size_t>(entries.size(), (mapping.end - at) / kPage);
      const std::size_t bytes = pages * sizeof(std::uint64_t);
      if (::pread(page_map_, entries.data(), bytes,
                  static_cast<off_t>(at / kPage * sizeof(std::uint64_t))) !=
          static_cast<ssize_t>(bytes)) {
        return os::SyscallError("read the page map of QEMU");
      }
      for (std::size_t i = 0; i < pages; ++i) {
        const bool changed =
            (entries[i] & (kPresent | kSwapped)) != 0 && (entries[i] & kOfFile) == 0;
        if (changed)
          CAISSON_TRY(Take(at + i * kPage, mapping.offset + (at - mapping.begin) + i * kPage));
      }
      at += pages * kPage;
    }
    return Flush();
  }
  std::uint64_t copied() const { return copied_; }

 private:
  Result<void> Take(std::uint64_t address, std::uint64_t offset) {
    if (size_ > 0 && (address != address_ + size_ || size_ == kBufferBytes)) CAISSON_TRY(Flush());
    if (size_ == 0) {
      address_ = address;
      offset_ = offset;
    }
    size_ += kPage;
    return {};
  }
  Result<void> Flush() {
    if (size_ == 0) return {};
    const iovec here{.iov_base = buffer_.data(), .iov_len = size_};
    const iovec there{.iov_base = reinterpret_cast<void*>(address_), .iov_len = size_};
    if (::process_vm_readv(process_, &here, 1, &there, 1, 0) != static_cast<ssize_t>(size_)) {
      return os::SyscallError("read the memory of QEMU");
    }
    if (::pwrite(to_, buffer_.data(), size_, static_cast<off_t>(offset_)) !=
        static_cast<ssize_t>(size_)) {
      if (errno == ENOSPC || errno == EDQUOT) {
        return Fail(errors::kMachineFull, "the host's disk is full; free some of it");
      }
      return os::SyscallError("write memory");
    }
    copied_ += size_;
    size_ = 0;
    return {};
  }

  const pid_t process_;
  const int page_map_;
  const int to_;
  std::vector<char> buffer_;
  std::uint64_t address_ = 0;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace

Result<std::uint64_t> WriteChangedMemory(pid_t process, const std::string& file,
                                         const std::string& to) {
  CAISSON_ASSIGN(const std::vector<Mapping> mappings, MappingsOf(process, file));
  CAISSON_ASSIGN(const os::UniqueFd page_map,
                 os::OpenFile("/proc/" + std::to_string(process) + "/pagemap", O_RDONLY));
  CAISSON_ASSIGN(const os::UniqueFd target, os::OpenFile(to, O_WRONLY));
  Copier copier(process, page_map.get(), target.get());
  for (const Mapping& mapping : mappings) CAISSON_TRY(copier.Copy(mapping));
  return copier.copied();
}

}  // namespace caisson::machine::microvm
