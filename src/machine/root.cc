// SPDX-License-Identifier: Apache-2.0
#include "machine/root.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

struct Node {
  const char* name;
  unsigned major, minor;
};
constexpr std::array<Node, 6> kNodes = {{{"null", 1, 3},
                                         {"zero", 1, 5},
                                         {"full", 1, 7},
                                         {"random", 1, 8},
                                         {"urandom", 1, 9},
                                         {"tty", 5, 0}}};
constexpr std::array<std::pair<const char*, const char*>, 5> kLinks = {
    {{"/proc/self/fd", "fd"},
     {"/proc/self/fd/0", "stdin"},
     {"/proc/self/fd/1", "stdout"},
     {"/proc/self/fd/2", "stderr"},
     {"pts/ptmx", "ptmx"}}};
// Places of mounts that each machine has of its own, and an empty directory to cover others with.
constexpr std::array<const char*, 4> kPlaces = {"pts", "shm", "mqueue", ".empty"};
constexpr std::array<const char*, 4> kImagePlaces = {"dev", "proc", "run", "tmp"};

Result<os::UniqueFd> CloneTree(int directory, const char* path, unsigned flags) {
  os::UniqueFd tree(::open_tree(directory, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags));
  if (!tree.valid()) return os::SyscallError(std::string("clone the mount ") + path);
  return tree;
}

Result<void> SetAttributes(int mount, std::uint64_t set, int user_namespace = -1) {
  mount_attr attributes{};
  attributes.attr_set = set;
  if (user_namespace >= 0) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<__u64>(user_namespace);
  }
  if (::mount_setattr(mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return os::SyscallError("set the attributes of a mount");
  }
  return {};
}

Result<void> MoveTo(int mount, const std::string& place) {
  if (::move_mount(mount, "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return os::SyscallError("mount on " + place);
  }
  return {};
}

// A directory of the image and no link: what is mounted on it must not land elsewhere.
Result<os::UniqueFd> OpenPlace(int root, const char* name) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  os::UniqueFd place(static_cast<int>(::syscall(SYS_openat2, root, name, &how, sizeof how)));
  if (!place.valid()) {
    return Fail(errors::kMachineNoImage, std::string("the image's root has no directory ") + name +
                                             ": " + os::ErrnoText(errno));
  }
  return place;
}

Result<os::UniqueFd> MakeDevices() {
  const os::UniqueFd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid()) return os::SyscallError("fsopen tmpfs");
  const auto set = [&context](const char* key, const char* value) {
    return ::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value, 0) == 0;
  };
  if (!set("mode", "755") || !set("size", "64k") ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return os::SyscallError("make a tmpfs for device nodes");
  }
  os::UniqueFd mount(
      ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  if (!mount.valid()) return os::SyscallError("make a tmpfs for device nodes");
  for (const Node& node : kNodes) {
    if (::mknodat(mount.get(), node.name, S_IFCHR, ::makedev(node.major, node.minor)) != 0 ||
        ::fchmodat(mount.get(), node.name, 0666, 0) != 0) {
      return os::SyscallError(std::string("make the device node ") + node.name);
    }
  }
  for (const auto& [target, name] : kLinks) {
    if (::symlinkat(target, mount.get(), name) != 0) return os::SyscallError("make a link");
  }
  for (const char* place : kPlaces) {
    if (::mkdirat(mount.get(), place, 0755) != 0) return os::SyscallError("make a directory");
  }
  return mount;
}

// Attaches what an overlay is made from, which older kernels find by paths alone; lets go of it
// when the overlay has its own hold.
class Workplace {
 public:
  explicit Workplace(std::string path) : path_(std::move(path)) {}
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    for (const char* part : kParts) {
      ::umount2((path_ + part).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
      ::rmdir((path_ + part).c_str());
    }
    ::rmdir(path_.c_str());
  }
  Result<void> Make() const {
    if (::mkdir(path_.c_str(), 0700) != 0) return os::SyscallError("mkdir " + path_);
    for (const char* part : kParts) {
      const std::string directory = path_ + part;
      if (::mkdir(directory.c_str(), 0700) != 0) return os::SyscallError("mkdir " + directory);
    }
    return {};
  }
  const std::string& path() const { return path_; }
  std::string image() const { return path_ + kParts[0]; }
  std::string disk() const { return path_ + kParts[1]; }
  std::string root() const { return path_ + kParts[2]; }

 private:
  static constexpr std::array<const char*, 3> kParts = {"/image", "/disk", "/root"};
  std::string path_;
};

// The calling thread owns what it makes as another user and has root's capabilities all the same.
// An overlay works with the rights of who mounts it, and the host's root has no name on a machine's
// disk.
class AsOwner {
 public:
  static Result<AsOwner> Become(std::uint32_t id) {
    AsOwner guard;
    ::syscall(SYS_setfsgid, id);
    ::syscall(SYS_setfsuid, id);
    const bool became = ::syscall(SYS_setfsuid, -1) == static_cast<long>(id);
    // The change has cost the rights over files that it has not got by its name.
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (!became || ::syscall(SYS_capget, &header, data) != 0) {
      return os::SyscallError("act as the owner of a disk", EPERM);
    }
    for (auto& word : data) word.effective = word.permitted;
    if (::syscall(SYS_capset, &header, data) != 0) {
      return os::SyscallError("act as the owner of a disk");
    }
    return guard;
  }
  AsOwner(AsOwner&& other) noexcept : active_(std::exchange(other.active_, false)) {}
  AsOwner& operator=(AsOwner&&) = delete;
  ~AsOwner() {
    if (!active_) return;
    ::syscall(SYS_setfsuid, ::geteuid());
    ::syscall(SYS_setfsgid, ::getegid());
  }

 private:
  AsOwner() = default;
  bool active_ = true;
};

Result<os::UniqueFd> MountOverlay(const Workplace& place, std::uint32_t first_host_id) {
  const os::UniqueFd context(::fsopen("overlay", FSOPEN_CLOEXEC));
  if (!context.valid()) return os::SyscallError("fsopen overlay");
  // The guest can read these: names within the place say nothing of the host.
  if (::chdir(place.path().c_str()) != 0) return os::SyscallError("chdir " + place.path());
  const std::array<std::pair<const char*, const char*>, 7> options = {
      {{"source", "machine"},
       {"lowerdir", "image"},
       {"upperdir", "disk/upper"},
       {"workdir", "disk/work"},
       // Directories of the image can be renamed; the attributes that say so are the host's alone
       // to write.
       {"redirect_dir", "on"},
       // Either would tie the disk to this copy of the image, or of itself.
       {"index", "off"},
       {"metacopy", "off"}}};
  for (const auto& [key, value] : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value, 0) != 0) {
      return os::SyscallError(std::string("overlay option ") + key);
    }
  }
  {
    CAISSON_ASSIGN(const AsOwner owner, AsOwner::Become(first_host_id));
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
      return os::SyscallError("mount the overlay of a machine");
    }
  }
  os::UniqueFd mount(
      ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID));
  if (!mount.valid()) return os::SyscallError("mount the overlay of a machine");
  // What an overlay cannot write it mounts read-only, and says so in the kernel's log alone.
  struct statfs info{};
  if (::fstatfs(mount.get(), &info) != 0 || (info.f_flags & ST_RDONLY) != 0) {
    return os::SyscallError("mount the overlay of a machine: it cannot be written", EROFS);
  }
  return mount;
}

// A mount namespace for the calling thread, which gets the host's later mounts and gives none back.
Result<void> MakeOwnMounts(const std::string& scratch) {
  if (::unshare(CLONE_NEWNS) != 0) return os::SyscallError("make a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return os::SyscallError("cut mounts off");
  }
  if (::mount("caisson", scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=700,size=4m") != 0) {
    return os::SyscallError("mount a tmpfs on " + scratch);
  }
  return {};
}

// The calling thread has other mounts as long as this lives.
class InMounts {
 public:
  static Result<InMounts> Enter(int mounts) {
    InMounts guard;
    CAISSON_ASSIGN(guard.own_, os::OpenFile("/proc/thread-self/ns/mnt", O_RDONLY));
    // A thread that shares its root and directory with others may not change them.
    if (::unshare(CLONE_FS) != 0 || ::setns(mounts, CLONE_NEWNS) != 0) {
      guard.own_.Reset();
      return os::SyscallError("enter the mount namespace of roots");
    }
    return guard;
  }
  InMounts(InMounts&&) noexcept = default;
  InMounts& operator=(InMounts&&) = delete;
  ~InMounts() {
    // A thread that is lost among other mounts must do nothing more.
    if (own_.valid() && ::setns(own_.get(), CLONE_NEWNS) != 0) ::abort();
  }

 private:
  InMounts() = default;
  os::UniqueFd own_;
};

}  // namespace

Result<RootBuilder> RootBuilder::Make(const std::string& scratch) {
  RootBuilder builder;
  builder.scratch_ = scratch;
  Result<void> made;
  std::thread([&] {
    made = [&]() -> Result<void> {
      CAISSON_TRY(MakeOwnMounts(scratch));
      CAISSON_ASSIGN(const os::UniqueFd devices, MakeDevices());
      // Kernels before 6.15 clone no mount that is attached nowhere.
      if (::mkdir(builder.DevicesPlace().c_str(), 0755) != 0) return os::SyscallError("mkdir dev");
      CAISSON_TRY(MoveTo(devices.get(), builder.DevicesPlace()));
      CAISSON_ASSIGN(builder.mounts_, os::OpenFile("/proc/thread-self/ns/mnt", O_RDONLY));
      return {};
    }();
  }).join();
  if (!made) return Fail(std::move(made).error());
  return builder;
}

Result<os::UniqueFd> RootBuilder::Build(const std::string& name, const std::string& image, int disk,
                                        int user_namespace, std::uint32_t owner) const {
  CAISSON_ASSIGN(const InMounts mounts, InMounts::Enter(mounts_.get()));
  const Workplace place(scratch_ + "/" + name);
  CAISSON_TRY(place.Make());
  CAISSON_ASSIGN(const os::UniqueFd lower, CloneTree(AT_FDCWD, image.c_str(), 0));
  CAISSON_TRY(SetAttributes(lower.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID,
                            user_namespace));
  CAISSON_TRY(MoveTo(lower.get(), place.image()));
  CAISSON_TRY(MoveTo(disk, place.disk()));
  CAISSON_ASSIGN(const os::UniqueFd overlay, MountOverlay(place, owner));
  for (const char* directory : kImagePlaces) CAISSON_TRY(OpenPlace(overlay.get(), directory));
  CAISSON_TRY(MoveTo(overlay.get(), place.root()));
  CAISSON_ASSIGN(const os::UniqueFd devices, CloneTree(AT_FDCWD, DevicesPlace().c_str(), 0));
  CAISSON_TRY(
      SetAttributes(devices.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  CAISSON_ASSIGN(const os::UniqueFd dev, OpenPlace(overlay.get(), "dev"));
  if (::move_mount(devices.get(), "", dev.get(), "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return os::SyscallError("mount the device nodes");
  }
  return CloneTree(AT_FDCWD, place.root().c_str(), AT_RECURSIVE);
}

Result<void> WriteInRoot(int root, std::uint32_t owner, const RootFiles& files) {
  CAISSON_ASSIGN(const AsOwner as, AsOwner::Become(owner));
  open_how how{};
  how.flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  how.mode = 0644;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (const auto& [path, content] : files) {
    const os::UniqueFd file(
        static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    (void)!::write(file.get(), content.data(), content.size());
  }
  return {};
}

}  // namespace caisson::machine
