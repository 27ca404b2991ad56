// SPDX-License-Identifier: Apache-2.0
// What the WASI functions have in common: their arguments, checked access to the guest's memory,
// descriptors. Only for the files wasi_*.cc.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wasm/wasi_system.h"

namespace caisson::wasm {

enum class FileType : std::uint8_t { kUnknown = 0, kDirectory = 3, kRegular = 4 };

struct WasiCalls {
  using Descriptor = WasiSystem::Descriptor;

  WasiSystem& system;
  MemoryView memory;
  const wasmtime_val_raw_t* arguments;

  std::uint32_t u32(int index) const { return static_cast<std::uint32_t>(arguments[index].i32); }
  std::uint64_t u64(int index) const { return static_cast<std::uint64_t>(arguments[index].i64); }

  template <typename T>
  [[nodiscard]] bool Store(std::uint64_t address, T value) const {
    if (!memory.Holds(address, sizeof value)) return false;
    std::memcpy(memory.data + address, &value, sizeof value);
    return true;
  }
  template <typename T>
  std::optional<T> Load(std::uint64_t address) const {
    if (!memory.Holds(address, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, memory.data + address, sizeof value);
    return value;
  }
  // Bytes of the guest; empty: not all of them are in its memory.
  std::optional<std::string_view> Text(std::uint64_t address, std::uint64_t size) const {
    if (!memory.Holds(address, size)) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(memory.data + address), size);
  }
  [[nodiscard]] bool Put(std::uint64_t address, std::string_view bytes) const {
    if (!memory.Holds(address, bytes.size())) return false;
    if (!bytes.empty()) std::memcpy(memory.data + address, bytes.data(), bytes.size());
    return true;
  }

  // Null: no such descriptor.
  Descriptor* Fd(std::uint32_t number) const {
    const auto at = system.descriptors_.find(number);
    return at == system.descriptors_.end() ? nullptr : &at->second;
  }
  // A file or directory, not a stream.
  std::expected<Descriptor*, Errno> NodeFd(std::uint32_t number) const {
    Descriptor* fd = Fd(number);
    if (fd == nullptr) return std::unexpected(Errno::kBadFd);
    if (fd->node == nullptr) return std::unexpected(Errno::kNoSeek);
    return fd;
  }

  // A list of buffers, checked whole before any is touched.
  struct Buffer {
    std::uint64_t address;
    std::uint64_t size;
  };
  std::expected<std::vector<Buffer>, Errno> Buffers(std::uint64_t address,
                                                    std::uint32_t count) const;
  bool StoreFileStat(std::uint64_t address, const FileNode* node) const;

  // One per WASI function.
  Errno ArgsSizesGet(), ArgsGet(), EnvironSizesGet(), EnvironGet(), ClockResGet(), ClockTimeGet(),
      RandomGet(), SchedYield(), PollOneoff(), ProcExit(), NotSupported(), Nothing();
  Errno FdAdvise(), FdAllocate(), FdClose(), FdSync(), FdFdstatGet(), FdFdstatSetFlags(),
      FdFdstatSetRights(), FdFilestatGet(), FdFilestatSetSize(), FdFilestatSetTimes(), FdPread(),
      FdPrestatGet(), FdPrestatDirName(), FdPwrite(), FdRead(), FdReaddir(), FdRenumber(), FdSeek(),
      FdTell(), FdWrite();
  Errno PathCreateDirectory(), PathFilestatGet(), PathFilestatSetTimes(), PathOpen(),
      PathReadlink(), PathRemoveDirectory(), PathRename(), PathUnlinkFile();

  std::chrono::nanoseconds Now(std::uint32_t clock) const { return system.Now(clock); }

 private:
  Errno StoreTexts(const std::vector<std::string>& texts) const;
  Errno StoreSizes(const std::vector<std::string>& texts) const;
  Errno ReadFrom(Descriptor& fd, std::uint64_t offset, bool moves, std::uint32_t result) const;
  Errno WriteTo(Descriptor& fd, std::uint64_t offset, bool moves, std::uint32_t result) const;
  Errno WriteStream(std::uint32_t number, const std::vector<Buffer>& buffers,
                    std::uint32_t result) const;
  Errno OpenNode(NodePtr node, std::uint32_t result, std::uint64_t rights, std::uint16_t flags);
  std::expected<NodePtr, Errno> FindForOpen(const Descriptor& base, std::string_view path,
                                            std::uint16_t how);
};

}  // namespace caisson::wasm
