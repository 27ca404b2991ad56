// SPDX-License-Identifier: Apache-2.0
// Disks of machines: one sparse file each with an ext4 file system in it, whose size is the hard
// quota. Files are owned inside as the guest sees them, so that a disk can be given to a machine
// with another range of ids. The only copy of a mounted disk is its mounts': when the last is gone,
// so is the loop device. Needs root. Paths are absolute and without links.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine {

// An empty disk of this size, copied from a formatted one that is kept in `templates` (made when
// it is missing, with mkfs.ext4). `file` must not exist. Fails with machine.full when the host's
// disk is, machine.unavailable without mkfs.ext4.
Result<void> MakeDisk(const std::string& templates, std::uint64_t bytes, const std::string& file);

// A copy of a disk that nobody writes: shares blocks where the host's file system can, else copies
// what is not a hole. On failure `to` does not exist.
Result<void> CopyDisk(const std::string& from, const std::string& to);

// Over a file that is there, which has nothing in it.
Result<void> CopyContents(const std::string& from, const std::string& to);

// The disk as a detached mount; the guest's ids are those of `user_namespace` when that is valid.
// A disk that is mounted already is mounted once more.
Result<os::UniqueFd> MountDisk(const std::string& file, int user_namespace = -1);

// Until no loop device uses the disk any more: a second one would destroy it. Fails with
// machine.unavailable.
Result<void> AwaitReleased(const std::string& file, std::chrono::milliseconds patience);

// Grows the disk, mounted or not; nothing when it is that large. Fails with machine.invalid beyond
// what this host can do.
Result<void> GrowDisk(const std::string& file, std::uint64_t bytes);

// No write reaches the disk while this lives, and what was written is in the file. A disk that is
// not mounted needs none. Whoever dies meanwhile leaves it frozen: see ThawDisk.
class FrozenDisk {
 public:
  static Result<FrozenDisk> Freeze(const std::string& file);
  FrozenDisk(FrozenDisk&&) noexcept = default;
  FrozenDisk& operator=(FrozenDisk&&) = delete;
  ~FrozenDisk();

 private:
  explicit FrozenDisk(os::UniqueFd mount) : mount_(std::move(mount)) {}
  os::UniqueFd mount_;
};
// Undoes what a FrozenDisk of a process that was killed has left; fine when there is nothing.
void ThawDisk(const std::string& file);

// What was written to the disk, mounted or not, survives a power failure.
Result<void> SyncDisk(const std::string& file);

// What is used of a disk of this size, by its file system when it is mounted, else by the file; 0
// when it cannot be known.
std::uint64_t UsedOfDisk(const std::string& file, std::uint64_t disk_bytes);

}  // namespace caisson::machine
