// SPDX-License-Identifier: Apache-2.0
#include "machine/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/driver.h"
#include "machine/loop_devices.h"
#include "machine/mkfs.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

// <linux/fs.h> and <sys/mount.h> of this glibc do not go together with <linux/mount.h>.
#ifndef EXT4_IOC_RESIZE_FS
#define EXT4_IOC_RESIZE_FS _IOW('f', 16, __u64)
#endif

namespace caisson::machine {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBlockBytes = kDiskBlockBytes;

std::unexpected<Status> DiskError(const std::string& what, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return Fail(errors::kMachineFull, what + ": the host's disk is full; free some of it");
  }
  return os::SyscallError(what, error);
}
std::unexpected<Status> DiskError(const std::string& what) { return DiskError(what, errno); }

Result<std::uint64_t> SizeOf(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return os::SyscallError("stat " + file);
  return static_cast<std::uint64_t>(info.st_size);
}

// --- mounts ---

Result<os::UniqueFd> MountDevice(const std::string& device) {
  const os::UniqueFd context(::fsopen("ext4", FSOPEN_CLOEXEC));
  if (!context.valid()) return os::SyscallError("fsopen ext4");
  const auto set = [&context](unsigned command, const char* key, const char* value) {
    return ::fsconfig(context.get(), command, key, value, 0) == 0;
  };
  const bool made = set(FSCONFIG_SET_STRING, "source", device.c_str()) &&
                    // What the guest frees, the host gets back.
                    set(FSCONFIG_SET_FLAG, "discard", nullptr) &&
                    set(FSCONFIG_SET_FLAG, "noinit_itable", nullptr) &&
                    set(FSCONFIG_SET_STRING, "errors", "remount-ro") &&
                    set(FSCONFIG_CMD_CREATE, nullptr, nullptr);
  if (!made) return os::SyscallError("mount the disk on " + device);
  os::UniqueFd mount(
      ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID));
  if (!mount.valid()) return os::SyscallError("mount the disk on " + device);
  return mount;
}

Result<void> MapIds(int mount, int user_namespace) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<__u64>(user_namespace);
  if (::mount_setattr(mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return os::SyscallError("map the ids of a disk");
  }
  return {};
}

// An open directory of the mounted file system, for what works on the whole of it.
Result<os::UniqueFd> OpenRoot(int mount) {
  os::UniqueFd root(::openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return os::SyscallError("open a disk's root");
  return root;
}

// The root of a disk that is in use, invalid when it is not. Never attaches it: whoever is at work
// with a machine does that.
Result<os::UniqueFd> OpenMounted(const std::string& file) {
  const std::string device = FindLoop(file);
  if (device.empty()) return os::UniqueFd();
  auto mount = MountDevice(device);
  if (!mount && FindLoop(file).empty()) return os::UniqueFd();  // gone in between
  if (!mount) return Fail(std::move(mount).error());
  return OpenRoot(mount->get());
}

// --- copies ---

// As copy_file_range, between any two file systems.
ssize_t CopySome(int from, loff_t& source, int to, loff_t& target, std::size_t size) {
  const ssize_t copied = ::copy_file_range(from, &source, to, &target, size, 0);
  if (copied >= 0 || errno != EXDEV) return copied;
  std::vector<char> buffer(std::min<std::size_t>(size, 1u << 20));
  const ssize_t n = ::pread(from, buffer.data(), buffer.size(), source);
  if (n <= 0) return n;
  const ssize_t written = ::pwrite(to, buffer.data(), static_cast<std::size_t>(n), target);
  if (written <= 0) return -1;
  source += written;
  target += written;
  return written;
}

Result<void> CopyExtents(int from, int to, std::uint64_t size) {
  if (::ftruncate(to, static_cast<off_t>(size)) != 0) return DiskError("size a disk");
  off_t at = 0;
  while ((at = ::lseek(from, at, SEEK_DATA)) >= 0) {
    const off_t end = ::lseek(from, at, SEEK_HOLE);
    if (end < 0) return os::SyscallError("read a disk");
    loff_t source = at;
    loff_t target = at;
    while (source < end) {
      const ssize_t n = CopySome(from, source, to, target, static_cast<std::size_t>(end - source));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return DiskError("copy a disk");
      if (n == 0) return os::SyscallError("copy a disk: it is shorter than it was", EIO);
    }
    at = end;
  }
  if (errno != ENXIO) return os::SyscallError("read a disk");
  return {};
}

Result<void> CopyInto(const std::string& from, int to) {
  CAISSON_ASSIGN(const os::UniqueFd source, os::OpenFile(from, O_RDONLY));
  if (::ioctl(to, FICLONE, source.get()) == 0) return {};
  CAISSON_ASSIGN(const std::uint64_t size, SizeOf(from));
  return CopyExtents(source.get(), to, size);
}

// Growing a mounted ext4 needs CAP_SYS_RESOURCE, which root has not got in every container. There
// disks are made larger than they may become full, and the rest is taken by a file that the guest
// never sees: its blocks are reserved and not written, so that they cost nothing, and given up when
// the disk grows.
constexpr const char* kBallast = "ballast";
constexpr std::uint64_t kHeadroom = 4;
constexpr std::uint64_t kEasyGrowth = 64;  // beyond it ext4 has to change its layout

bool CanGrowMounted() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  return ::syscall(SYS_capget, &header, data) == 0 &&
         (data[CAP_SYS_RESOURCE / 32].effective & 1u << (CAP_SYS_RESOURCE % 32)) != 0;
}

std::uint64_t FileBytes(std::uint64_t disk_bytes) {
  return CanGrowMounted() ? disk_bytes : std::min(disk_bytes * kHeadroom, kMaxDiskBytes);
}

Result<void> TakeBallast(int mount, std::uint64_t bytes) {
  const os::UniqueFd file(::openat(mount, kBallast, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() || ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    return DiskError("limit a disk");
  }
  return {};
}

// How much of the file system is not the guest's.
Result<std::uint64_t> BallastOf(int mount) {
  struct stat info{};
  if (::fstatat(mount, kBallast, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return 0;
    return os::SyscallError("find a disk's limit");
  }
  return static_cast<std::uint64_t>(info.st_size);
}

Result<void> ShrinkBallast(int mount, std::uint64_t bytes) {
  if (bytes == 0) {
    if (::unlinkat(mount, kBallast, 0) != 0) return os::SyscallError("raise a disk's limit");
    return {};
  }
  const os::UniqueFd file(::openat(mount, kBallast, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return os::SyscallError("raise a disk's limit");
  }
  return {};
}

Result<void> Format(const std::string& file, std::uint64_t disk_bytes) {
  const std::uint64_t bytes = FileBytes(disk_bytes);
  const os::UniqueFd made(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!made.valid()) return DiskError("make " + file);
  if (::ftruncate(made.get(), static_cast<off_t>(bytes)) != 0) return DiskError("size " + file);
  // Room for the descriptors of a file system that has grown is never empty, and is copied with
  // each disk: no more of it than can be used.
  const bool can_grow = CanGrowMounted();
  const std::uint64_t largest = std::min(disk_bytes * kEasyGrowth, kMaxDiskBytes) / kBlockBytes;
  // Holes are zeros already, and nothing may fill them later.
  std::string extended = "assume_storage_prezeroed=1,nodiscard,lazy_itable_init=1";
  if (can_grow && largest > bytes / kBlockBytes) extended += ",resize=" + std::to_string(largest);
  CAISSON_ASSIGN(
      const os::ProgramEnd end,
      RunMkfs(file, disk_bytes, extended, {"-O", can_grow ? "resize_inode" : "^resize_inode"}));
  if (end.succeeded()) return {};
  return Fail(errors::kMachineUnavailable,
              "mkfs.ext4 (Debian's e2fsprogs) " + os::ToText(end.status) + ": " + end.messages);
}

// What the overlay wants, made once.
Result<void> Furnish(const std::string& file, std::uint64_t disk_bytes) {
  CAISSON_ASSIGN(const os::UniqueFd mount, MountDisk(file));
  for (const char* directory : {"upper", "work"}) {
    if (::mkdirat(mount.get(), directory, 0755) != 0) return DiskError("make a disk's directories");
  }
  // mkfs made it for what fsck finds; the guest never sees it.
  (void)::unlinkat(mount.get(), "lost+found", AT_REMOVEDIR);
  const std::uint64_t ballast = FileBytes(disk_bytes) - disk_bytes;
  if (ballast > 0) CAISSON_TRY(TakeBallast(mount.get(), ballast));
  return {};
}

// Blocks of zeros that mkfs wrote become holes: nobody has to copy them.
Result<void> DigHoles(const std::string& file) {
  CAISSON_ASSIGN(const os::UniqueFd fd, os::OpenFile(file, O_RDWR));
  std::array<char, kBlockBytes> block;
  off_t at = 0;
  while ((at = ::lseek(fd.get(), at, SEEK_DATA)) >= 0) {
    at -= at % static_cast<off_t>(kBlockBytes);
    const ssize_t got = ::pread(fd.get(), block.data(), block.size(), at);
    if (got <= 0) return os::SyscallError("read " + file);
    const bool is_empty =
        std::all_of(block.data(), block.data() + got, [](char c) { return c == 0; });
    // A file system without holes keeps its zeros.
    if (is_empty &&
        ::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, got) != 0) {
      return errno == EOPNOTSUPP ? Result<void>() : DiskError("dig holes into " + file);
    }
    at += got;
  }
  if (errno != ENXIO) return os::SyscallError("read " + file);
  return {};
}

Result<std::string> Template(const std::string& templates, std::uint64_t bytes) {
  std::string file = templates + "/ext4-" + std::to_string(bytes) + ".img";
  if (::access(file.c_str(), F_OK) == 0) return file;
  static std::atomic<unsigned> counter{0};
  const std::string draft =
      file + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".new";
  Result<void> made = Format(draft, bytes);
  if (made) made = Furnish(draft, bytes);
  if (made) made = AwaitReleased(draft, milliseconds(10'000));
  if (made) made = DigHoles(draft);
  if (made && ::rename(draft.c_str(), file.c_str()) != 0) made = DiskError("make " + file);
  if (made) return file;
  (void)::unlink(draft.c_str());
  return Fail(std::move(made).error());
}

Result<void> GrowFileSystem(const std::string& file, int mount, std::uint64_t bytes) {
  if (!CanGrowMounted()) {
    CAISSON_ASSIGN(const std::uint64_t size, SizeOf(file));
    return Fail(
        errors::kMachineInvalid,
        fmt::format("disk_bytes: this disk can grow to {} and no further, because the helper "
                    "runs without CAP_SYS_RESOURCE",
                    size));
  }
  CAISSON_ASSIGN(const os::UniqueFd root, OpenRoot(mount));
  if (::truncate(file.c_str(), static_cast<off_t>(bytes)) != 0) return DiskError("grow " + file);
  CAISSON_ASSIGN(const os::UniqueFd loop, os::OpenFile(FindLoop(file), O_RDWR));
  CAISSON_TRY(RereadSize(loop.get()));
  __u64 blocks = bytes / kBlockBytes;
  if (::ioctl(root.get(), EXT4_IOC_RESIZE_FS, &blocks) != 0) return DiskError("grow a disk");
  return {};
}

}  // namespace

Result<void> CopyDisk(const std::string& from, const std::string& to) {
  const os::UniqueFd copy(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!copy.valid()) return DiskError("make " + to);
  auto copied = CopyInto(from, copy.get());
  if (!copied) (void)::unlink(to.c_str());
  return copied;
}

Result<void> CopyContents(const std::string& from, const std::string& to) {
  CAISSON_ASSIGN(const os::UniqueFd copy, os::OpenFile(to, O_RDWR));
  return CopyInto(from, copy.get());
}

Result<void> MakeDisk(const std::string& templates, std::uint64_t bytes, const std::string& file) {
  CAISSON_ASSIGN(const std::string formatted, Template(templates, bytes));
  return CopyDisk(formatted, file);
}

Result<os::UniqueFd> MountDisk(const std::string& file, int user_namespace) {
  Loop loop{.device = FindLoop(file), .fd = {}};
  if (loop.device.empty()) {
    CAISSON_ASSIGN(loop, AttachLoop(file));
  }
  CAISSON_ASSIGN(os::UniqueFd mount, MountDevice(loop.device));
  if (user_namespace >= 0) CAISSON_TRY(MapIds(mount.get(), user_namespace));
  return mount;
}

Result<void> AwaitReleased(const std::string& file, milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (true) {
    const std::string device = FindLoop(file);
    if (device.empty()) return {};
    if (Clock::now() > deadline) {
      return Fail(errors::kMachineUnavailable,
                  fmt::format("{} is still attached to {}", file, device));
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

Result<void> GrowDisk(const std::string& file, std::uint64_t bytes) {
  CAISSON_ASSIGN(const os::UniqueFd mount, MountDisk(file));
  CAISSON_ASSIGN(const std::uint64_t size, SizeOf(file));
  CAISSON_ASSIGN(const std::uint64_t ballast, BallastOf(mount.get()));
  if (size - ballast >= bytes) return {};
  if (bytes > size) CAISSON_TRY(GrowFileSystem(file, mount.get(), bytes));
  if (ballast > 0) CAISSON_TRY(ShrinkBallast(mount.get(), bytes < size ? size - bytes : 0));
  return {};
}

Result<FrozenDisk> FrozenDisk::Freeze(const std::string& file) {
  CAISSON_ASSIGN(os::UniqueFd root, OpenMounted(file));
  if (!root.valid()) return FrozenDisk(os::UniqueFd());
  if (::ioctl(root.get(), FIFREEZE, 0) != 0) return os::SyscallError("freeze the disk " + file);
  return FrozenDisk(std::move(root));
}

FrozenDisk::~FrozenDisk() {
  if (mount_.valid()) ::ioctl(mount_.get(), FITHAW, 0);
}

void ThawDisk(const std::string& file) {
  const auto root = OpenMounted(file);
  if (root && root->valid()) (void)::ioctl(root->get(), FITHAW, 0);
}

Result<void> SyncDisk(const std::string& file) {
  {
    CAISSON_ASSIGN(const os::UniqueFd root, OpenMounted(file));
    if (root.valid() && ::syncfs(root.get()) != 0) return os::SyscallError("sync " + file);
  }
  CAISSON_ASSIGN(const os::UniqueFd opened, os::OpenFile(file, O_RDONLY));
  if (::fsync(opened.get()) != 0) return os::SyscallError("fsync " + file);
  return {};
}

std::uint64_t UsedOfDisk(const std::string& file, std::uint64_t disk_bytes) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return 0;
  const auto root = OpenMounted(file);
  if (!root) return 0;
  if (!root->valid()) return static_cast<std::uint64_t>(info.st_blocks) * 512;
  struct statfs system{};
  if (::fstatfs(root->get(), &system) != 0) return 0;
  const auto used = (system.f_blocks - system.f_bfree) * static_cast<std::uint64_t>(system.f_bsize);
  const std::uint64_t size = static_cast<std::uint64_t>(info.st_size);
  return used - std::min(used, size - std::min(size, disk_bytes));
}

}  // namespace caisson::machine
