// SPDX-License-Identifier: Apache-2.0
// The contents of a linear memory, to be mapped copy-on-write by any number of instances: in an
// anonymous file that nobody can change any more (all seals), or in a file of the cache, which all
// processes share that map it. Immutable and thread-safe. Pages of zeros take no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::wasm {

inline constexpr std::size_t kPageBytes = 4096;

class MemoryImage {
 public:
  // `size` is a multiple of 64 KiB; `bytes` is at most that long, zeros follow. Fails with
  // os.syscall.
  static Result<std::shared_ptr<const MemoryImage>> Make(std::string_view bytes,
                                                         std::uint64_t size);
  // All of a regular file, which is not written to any more. The same fails.
  static Result<std::shared_ptr<const MemoryImage>> OfFile(os::UniqueFd fd);

  ~MemoryImage();
  MemoryImage(const MemoryImage&) = delete;
  MemoryImage& operator=(const MemoryImage&) = delete;

  int fd() const { return fd_.get(); }
  std::uint64_t size() const { return size_; }
  std::string_view bytes() const { return {static_cast<const char*>(view_), size_}; }

 private:
  static Result<std::shared_ptr<const MemoryImage>> Map(os::UniqueFd fd, std::uint64_t size);
  MemoryImage(os::UniqueFd fd, std::uint64_t size, const void* view)
      : fd_(std::move(fd)), size_(size), view_(view) {}

  os::UniqueFd fd_;
  std::uint64_t size_;
  const void* view_;
};

}  // namespace caisson::wasm
