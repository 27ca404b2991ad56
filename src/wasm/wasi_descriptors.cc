// SPDX-License-Identifier: Apache-2.0
// The fd_* functions of WASI.
#include <algorithm>
#include <limits>

#include "wasm/wasi_calls.h"

namespace caisson::wasm {
namespace {

constexpr std::uint16_t kAppend = 1;
constexpr std::uint32_t kMostBuffers = 1024;
constexpr std::string_view kRootName = "/";

// Rights are the old way of WASI to say what a descriptor is for; libc looks at these two groups.
constexpr std::uint64_t kFileRights = 0x0860'01ff;
constexpr std::uint64_t kDirectoryRights = 0x0fff'ffff;
constexpr std::uint64_t kStreamRights = 0x0820'004a;  // no seek, no tell

FileType TypeOf(const FileNode* node) {
  // A stream is no terminal, so that nobody colours what is printed there.
  if (node == nullptr) return FileType::kUnknown;
  return node->is_directory() ? FileType::kDirectory : FileType::kRegular;
}

}  // namespace

std::expected<std::vector<WasiCalls::Buffer>, Errno> WasiCalls::Buffers(std::uint64_t address,
                                                                        std::uint32_t count) const {
  if (count > kMostBuffers) return std::unexpected(Errno::kInvalid);
  std::vector<Buffer> buffers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto at = Load<std::uint32_t>(address + std::uint64_t{i} * 8);
    const auto size = Load<std::uint32_t>(address + std::uint64_t{i} * 8 + 4);
    if (!at || !size || !memory.Holds(*at, *size)) return std::unexpected(Errno::kFault);
    buffers.push_back({*at, *size});
  }
  return buffers;
}

bool WasiCalls::StoreFileStat(std::uint64_t address, const FileNode* node) const {
  std::array<std::uint64_t, 8> stat{};
  stat[0] = node == nullptr ? 0 : 1;
  stat[1] = node == nullptr ? 0 : node->number();
  stat[2] = static_cast<std::uint64_t>(TypeOf(node));
  stat[3] = 1;
  stat[4] = node == nullptr ? 0 : node->bytes().size();
  stat[5] = stat[6] = stat[7] = node == nullptr ? 0 : node->changed();
  return Store(address, stat);
}

Errno WasiCalls::FdAdvise() { return Fd(u32(0)) != nullptr ? Errno::kSuccess : Errno::kBadFd; }
Errno WasiCalls::FdSync() { return Fd(u32(0)) != nullptr ? Errno::kSuccess : Errno::kBadFd; }

Errno WasiCalls::FdAllocate() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  if (!(*fd)->can_write) return Errno::kBadFd;
  const std::uint64_t end = u64(1) + u64(2);
  if (end < u64(1)) return Errno::kTooBig;
  return end <= (*fd)->node->bytes().size() ? Errno::kSuccess : (*fd)->node->Resize(end);
}

Errno WasiCalls::FdClose() {
  Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  if (fd->is_root) return Errno::kNotSupported;
  system.descriptors_.erase(u32(0));
  return Errno::kSuccess;
}

Errno WasiCalls::FdFdstatGet() {
  const Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  const FileType type = TypeOf(fd->node.get());
  const std::uint64_t rights = type == FileType::kDirectory ? kDirectoryRights
                               : type == FileType::kRegular ? kFileRights
                                                            : kStreamRights;
  std::array<std::uint64_t, 3> stat{};
  stat[0] = static_cast<std::uint64_t>(type) | std::uint64_t{fd->flags} << 16;
  stat[1] = rights;
  stat[2] = type == FileType::kDirectory ? kDirectoryRights : 0;
  return Store(u32(1), stat) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdFdstatSetFlags() {
  Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  fd->flags = static_cast<std::uint16_t>(u32(1) & kAppend);
  return Errno::kSuccess;
}

Errno WasiCalls::FdFdstatSetRights() {
  return Fd(u32(0)) != nullptr ? Errno::kSuccess : Errno::kBadFd;
}

Errno WasiCalls::FdFilestatGet() {
  const Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  return StoreFileStat(u32(1), fd->node.get()) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdFilestatSetSize() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  if ((*fd)->node->is_directory()) return Errno::kIsDirectory;
  if (!(*fd)->can_write) return Errno::kBadFd;
  return (*fd)->node->Resize(u64(1));
}

Errno WasiCalls::FdFilestatSetTimes() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  return (*fd)->node->is_writable() ? Errno::kSuccess : Errno::kReadOnly;
}

Errno WasiCalls::ReadFrom(Descriptor& fd, std::uint64_t offset, bool moves,
                          std::uint32_t result) const {
  if (!fd.can_read) return Errno::kBadFd;
  if (fd.node != nullptr && fd.node->is_directory()) return Errno::kIsDirectory;
  const auto buffers = Buffers(u32(1), u32(2));
  if (!buffers) return buffers.error();
  // Standard input is at its end.
  const std::string_view bytes = fd.node == nullptr ? std::string_view() : fd.node->bytes();
  std::uint64_t at = std::min<std::uint64_t>(offset, bytes.size());
  const std::uint64_t start = at;
  for (const Buffer& buffer : *buffers) {
    const std::string_view piece = bytes.substr(at, buffer.size);
    if (!Put(buffer.address, piece)) return Errno::kFault;
    at += piece.size();
    if (piece.size() < buffer.size) break;
  }
  if (moves) fd.position = std::max(fd.position, start) + (at - start);
  return Store(result, static_cast<std::uint32_t>(at - start)) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdRead() {
  Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  return ReadFrom(*fd, fd->position, true, u32(3));
}

Errno WasiCalls::FdPread() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  return ReadFrom(**fd, u64(3), false, u32(4));
}

Errno WasiCalls::WriteStream(std::uint32_t number, const std::vector<Buffer>& buffers,
                             std::uint32_t result) const {
  std::uint32_t written = 0;
  for (const Buffer& buffer : buffers) {
    const auto text = Text(buffer.address, buffer.size);
    if (!text) return Errno::kFault;
    if (system.output_) system.output_(static_cast<WasiSystem::Stream>(number), *text);
    written += static_cast<std::uint32_t>(buffer.size);
  }
  return Store(result, written) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::WriteTo(Descriptor& fd, std::uint64_t offset, bool moves,
                         std::uint32_t result) const {
  if (!fd.can_write) return Errno::kBadFd;
  if (!memory.Holds(result, 4)) return Errno::kFault;
  const auto buffers = Buffers(u32(1), u32(2));
  if (!buffers) return buffers.error();
  std::uint64_t total = 0;
  for (const Buffer& buffer : *buffers) total += buffer.size;
  if (total > std::numeric_limits<std::uint32_t>::max()) return Errno::kInvalid;
  if (fd.node == nullptr) return WriteStream(u32(0), *buffers, result);
  if (moves && (fd.flags & kAppend) != 0) offset = fd.node->bytes().size();
  std::uint64_t at = offset;
  for (const Buffer& buffer : *buffers) {
    const Errno error = fd.node->Write(at, *Text(buffer.address, buffer.size));
    if (error != Errno::kSuccess && at == offset) return error;
    if (error != Errno::kSuccess) break;
    at += buffer.size;
  }
  fd.node->set_changed(static_cast<std::uint64_t>(Now(0).count()));
  if (moves) fd.position = at;
  return Store(result, static_cast<std::uint32_t>(at - offset)) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdWrite() {
  Descriptor* fd = Fd(u32(0));
  if (fd == nullptr) return Errno::kBadFd;
  return WriteTo(*fd, fd->position, true, u32(3));
}

Errno WasiCalls::FdPwrite() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  return WriteTo(**fd, u64(3), false, u32(4));
}

Errno WasiCalls::FdPrestatGet() {
  const Descriptor* fd = Fd(u32(0));
  if (fd == nullptr || !fd->is_root) return Errno::kBadFd;
  const std::array<std::uint32_t, 2> stat = {0, static_cast<std::uint32_t>(kRootName.size())};
  return Store(u32(1), stat) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdPrestatDirName() {
  const Descriptor* fd = Fd(u32(0));
  if (fd == nullptr || !fd->is_root) return Errno::kBadFd;
  if (u32(2) < kRootName.size()) return Errno::kNameTooLong;
  return Put(u32(1), kRootName) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdReaddir() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  Descriptor& directory = **fd;
  if (!directory.node->is_directory()) return Errno::kNotDirectory;
  if (!memory.Holds(u32(1), u32(2)) || !memory.Holds(u32(4), 4)) return Errno::kFault;
  const std::uint64_t cookie = u64(3);
  // What is listed is what was there when the listing began.
  if (cookie == 0) {
    directory.listing.assign(directory.node->entries().begin(), directory.node->entries().end());
  }
  std::uint64_t used = 0;
  const std::uint64_t room = u32(2);
  for (std::uint64_t i = cookie; i < directory.listing.size() && used < room; ++i) {
    const auto& [name, node] = directory.listing[i];
    std::array<std::uint64_t, 3> head = {
        i + 1, node->number(), name.size() | static_cast<std::uint64_t>(TypeOf(node.get())) << 32};
    std::string entry(sizeof head, '\0');
    std::memcpy(entry.data(), head.data(), sizeof head);
    entry += name;
    entry.resize(std::min<std::uint64_t>(entry.size(), room - used));
    if (!Put(u32(1) + used, entry)) return Errno::kFault;
    used += entry.size();
  }
  return Store(u32(4), static_cast<std::uint32_t>(used)) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::FdRenumber() {
  Descriptor* from = Fd(u32(0));
  const Descriptor* to = Fd(u32(1));
  if (from == nullptr || to == nullptr) return Errno::kBadFd;
  if (from->is_root || to->is_root || from->node == nullptr || to->node == nullptr) {
    return Errno::kNotSupported;
  }
  if (u32(0) == u32(1)) return Errno::kSuccess;
  system.descriptors_[u32(1)] = std::move(*from);
  system.descriptors_.erase(u32(0));
  return Errno::kSuccess;
}

Errno WasiCalls::FdSeek() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  if ((*fd)->node->is_directory()) return Errno::kBadFd;
  const std::array<std::uint64_t, 3> bases = {0, (*fd)->position, (*fd)->node->bytes().size()};
  if (u32(2) >= bases.size()) return Errno::kInvalid;
  std::int64_t target = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(bases[u32(2)]),
                             static_cast<std::int64_t>(u64(1)), &target) ||
      target < 0) {
    return Errno::kInvalid;
  }
  if (!Store(u32(3), target)) return Errno::kFault;
  (*fd)->position = static_cast<std::uint64_t>(target);
  return Errno::kSuccess;
}

Errno WasiCalls::FdTell() {
  const auto fd = NodeFd(u32(0));
  if (!fd) return fd.error();
  return Store(u32(1), (*fd)->position) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace caisson::wasm
