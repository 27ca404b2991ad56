// SPDX-License-Identifier: Apache-2.0
// The path_* functions of WASI.
#include "wasm/wasi_calls.h"

namespace caisson::wasm {
namespace {

constexpr std::uint16_t kCreate = 1;
constexpr std::uint16_t kDirectory = 2;
constexpr std::uint16_t kExclusive = 4;
constexpr std::uint16_t kTruncate = 8;
constexpr std::uint64_t kReadRight = 1u << 1;
constexpr std::uint64_t kWriteRight = 1u << 6;

}  // namespace

// A place that a call names by a directory's descriptor and a path.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes no parentheses
#define CAISSON_WASI_PATH(base, path, fd_index, path_index)                                     \
  const auto base = NodeFd(u32(fd_index));                                                      \
  if (!(base)) return (base).error() == Errno::kNoSeek ? Errno::kNotDirectory : (base).error(); \
  const auto path = Text(u32(path_index), u32((path_index) + 1));                               \
  if (!(path)) return Errno::kFault
// NOLINTEND(bugprone-macro-parentheses)

Errno WasiCalls::PathCreateDirectory() {
  CAISSON_WASI_PATH(base, path, 0, 1);
  const auto made = system.files_.Create((*base)->node, *path, true);
  if (!made) return made.error();
  (*made)->set_changed(static_cast<std::uint64_t>(Now(0).count()));
  return Errno::kSuccess;
}

Errno WasiCalls::PathFilestatGet() {
  CAISSON_WASI_PATH(base, path, 0, 2);
  const auto node = system.files_.Find((*base)->node, *path);
  if (!node) return node.error();
  return StoreFileStat(u32(4), node->get()) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::PathFilestatSetTimes() {
  CAISSON_WASI_PATH(base, path, 0, 2);
  const auto node = system.files_.Find((*base)->node, *path);
  if (!node) return node.error();
  return (*node)->is_writable() ? Errno::kSuccess : Errno::kReadOnly;
}

Errno WasiCalls::PathReadlink() {
  CAISSON_WASI_PATH(base, path, 0, 1);
  const auto node = system.files_.Find((*base)->node, *path);
  return node ? Errno::kInvalid : node.error();  // there are no links
}

Errno WasiCalls::PathRemoveDirectory() {
  CAISSON_WASI_PATH(base, path, 0, 1);
  return system.files_.Remove((*base)->node, *path, true);
}

Errno WasiCalls::PathUnlinkFile() {
  CAISSON_WASI_PATH(base, path, 0, 1);
  return system.files_.Remove((*base)->node, *path, false);
}

Errno WasiCalls::PathRename() {
  CAISSON_WASI_PATH(from_base, from, 0, 1);
  CAISSON_WASI_PATH(to_base, to, 3, 4);
  return system.files_.Rename((*from_base)->node, *from, (*to_base)->node, *to);
}

std::expected<NodePtr, Errno> WasiCalls::FindForOpen(const Descriptor& base, std::string_view path,
                                                     std::uint16_t how) {
  auto found = system.files_.Find(base.node, path);
  if (found) {
    if ((how & (kCreate | kExclusive)) == (kCreate | kExclusive)) {
      return std::unexpected(Errno::kExists);
    }
    return found;
  }
  const bool missing = found.error() == Errno::kNoEntry;
  if (!missing || (how & kCreate) == 0 || (how & kDirectory) != 0) return found;
  auto made = system.files_.Create(base.node, path, false);
  if (made) (*made)->set_changed(static_cast<std::uint64_t>(Now(0).count()));
  return made;
}

Errno WasiCalls::OpenNode(NodePtr node, std::uint32_t result, std::uint64_t rights,
                          std::uint16_t flags) {
  constexpr std::uint32_t kFirst = 4;
  if (!memory.Holds(result, 4)) return Errno::kFault;
  auto& open = system.descriptors_;
  if (open.size() >= system.options_.files.descriptors) return Errno::kTooManyOpen;
  std::uint32_t number = kFirst;
  for (auto at = open.lower_bound(kFirst); at != open.end() && at->first == number; ++at) ++number;
  const bool writes = (rights & kWriteRight) != 0 && !node->is_directory();
  open[number] = Descriptor{.node = std::move(node),
                            .flags = flags,
                            .can_read = (rights & kReadRight) != 0,
                            .can_write = writes};
  return Store(result, number) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::PathOpen() {
  CAISSON_WASI_PATH(base, path, 0, 2);
  const auto how = static_cast<std::uint16_t>(u32(4));
  const std::uint64_t rights = u64(5);
  const auto flags = static_cast<std::uint16_t>(u32(7) & 1u);
  if (!(*base)->node->is_directory()) return Errno::kNotDirectory;
  if (!memory.Holds(u32(8), 4)) return Errno::kFault;
  if (system.descriptors_.size() >= system.options_.files.descriptors) {
    return Errno::kTooManyOpen;  // before a file is made that nobody can use
  }
  auto node = FindForOpen(**base, *path, how);
  if (!node) return node.error();
  const bool writes = (rights & kWriteRight) != 0 || (how & kTruncate) != 0;
  if ((*node)->is_directory()) {
    // libc asks for all rights when it opens a directory; only truncation is a plain mistake.
    if ((how & kTruncate) != 0) return Errno::kIsDirectory;
    return OpenNode(*std::move(node), u32(8), rights | kReadRight, 0);
  }
  if ((how & kDirectory) != 0) return Errno::kNotDirectory;
  if (writes && !(*node)->is_writable()) return Errno::kReadOnly;
  if ((how & kTruncate) != 0) {
    if (const Errno error = (*node)->Resize(0); error != Errno::kSuccess) return error;
  }
  return OpenNode(*std::move(node), u32(8), rights, flags);
}

#undef CAISSON_WASI_PATH

}  // namespace caisson::wasm
