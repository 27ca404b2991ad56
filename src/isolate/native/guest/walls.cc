// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/guest/walls.h"

#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

#include "isolate/native/guest/kernel.h"
#include "isolate/native/guest/text.h"

namespace caisson::isolate::native {
namespace {

constexpr uint64_t kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;
constexpr uint32_t kUserInside = 1000;
constexpr Failure kGood = {CallWall::kUserNamespace, 0, nullptr};

Failure Failed(CallWall wall, const char* step, long result) {
  return {wall, static_cast<int>(-result), step};
}

long WriteFile(const char* path, const char* text, size_t size) {
  const long fd = Kernel(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  const long written = Kernel(__NR_write, fd, text, size);
  Kernel(__NR_close, fd);
  return written < 0 ? written : 0;
}

long WriteMap(const char* path, uint32_t outer) {
  Text<48> map;
  map.Add(kUserInside).Add(" ").Add(outer).Add(" 1\n");
  return WriteFile(path, map.data(), map.size());
}

Failure MapUser(uint32_t user, uint32_t group) {
  // The kernel wants this before an unprivileged gid_map.
  if (const long result = WriteFile("/proc/self/setgroups", "deny", 4)) {
    return Failed(CallWall::kUserNamespace, "deny setgroups", result);
  }
  if (const long result = WriteMap("/proc/self/uid_map", user)) {
    return Failed(CallWall::kUserNamespace, "map the user", result);
  }
  if (const long result = WriteMap("/proc/self/gid_map", group)) {
    return Failed(CallWall::kUserNamespace, "map the group", result);
  }
  return kGood;
}

// Also covers what the zygote sees of itself and of other calls.
Failure MountProc() {
  if (Kernel(__NR_mount, "proc", "/proc", "proc", kInert, "subset=pid,hidepid=invisible") == 0) {
    return kGood;
  }
  const long result = Kernel(__NR_mount, "caisson", "/proc", "tmpfs", kInert | MS_RDONLY,
                             "mode=555,size=4k,nr_inodes=2");
  return result == 0 ? kGood : Failed(CallWall::kMountNamespace, "cover /proc", result);
}

Failure MountTmp(const CallRequest& request) {
  Text<96> data;
  data.Add("mode=700,size=").Add(request.disk_bytes);
  data.Add(",nr_inodes=").Add(request.disk_inodes);
  data.Add(",uid=").Add(kUserInside).Add(",gid=").Add(kUserInside);
  long result = Kernel(__NR_mount, "caisson", "/tmp", "tmpfs", kInert, data.data());
  if (result < 0) return Failed(CallWall::kMountNamespace, "mount a tmpfs on /tmp", result);
  result = Kernel(__NR_chdir, "/tmp");
  if (result < 0) return Failed(CallWall::kMountNamespace, "chdir to /tmp", result);
  return kGood;
}

uint64_t ReadNumber(const char*& at) {
  uint64_t number = 0;
  while (*at >= '0' && *at <= '9') number = number * 10 + static_cast<uint64_t>(*at++ - '0');
  while (*at == ' ') ++at;
  return number;
}

// /proc/self/statm: size resident shared text lib data dt, in pages.
long ReadSizes(Sizes& sizes) {
  char text[128] = {};
  const long fd = Kernel(__NR_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  const long n = Kernel(__NR_read, fd, text, sizeof text - 1);
  Kernel(__NR_close, fd);
  if (n < 0) return n;
  constexpr uint64_t kPage = 4096;
  const char* at = text;
  sizes.address = ReadNumber(at) * kPage;
  for (int i = 0; i < 4; ++i) ReadNumber(at);
  sizes.data = ReadNumber(at) * kPage;
  return 0;
}

long LowerLimit(int resource, uint64_t value) {
  struct {
    uint64_t soft, hard;
  } limit = {0, 0};
  long result = Kernel(__NR_prlimit64, 0, resource, nullptr, &limit);
  if (result < 0) return result;
  if (value < limit.hard) limit.hard = value;
  limit.soft = limit.hard;
  return Kernel(__NR_prlimit64, 0, resource, &limit, nullptr);
}

Failure LowerLimits(const CallRequest& request, const Sizes& sizes) {
  const struct {
    uint64_t value;
    int resource;
    bool wanted;
  } limits[] = {
      {static_cast<uint64_t>(kChannelFd), RLIMIT_NOFILE, true},
      {request.threads, RLIMIT_NPROC, request.threads != 0},
      {sizes.data + request.data_bytes, RLIMIT_DATA, request.data_bytes != 0},
      {sizes.address + request.address_bytes, RLIMIT_AS, request.address_bytes != 0},
      {request.disk_bytes, RLIMIT_FSIZE, true},
      {request.cpu_seconds, RLIMIT_CPU, request.cpu_seconds != 0},
      {64, RLIMIT_SIGPENDING, true},
      {0, RLIMIT_CORE, true},
  };
  for (const auto& limit : limits) {
    if (!limit.wanted) continue;
    const long result = LowerLimit(limit.resource, limit.value);
    if (result < 0) return Failed(CallWall::kResourceLimits, "lower a resource limit", result);
  }
  return kGood;
}

Failure DropCapabilities() {
  for (int capability = 0; capability < 64; ++capability) {
    const long held = Kernel(__NR_prctl, PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) break;
    if (held == 0) continue;
    const long result = Kernel(__NR_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result < 0) return Failed(CallWall::kCapabilities, "empty the bounding set", result);
  }
  const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  long result = Kernel(__NR_prctl, PR_SET_SECUREBITS, bits, 0, 0, 0);
  if (result < 0) return Failed(CallWall::kCapabilities, "lock the securebits", result);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  result = Kernel(__NR_capset, &header, data);
  if (result < 0) return Failed(CallWall::kCapabilities, "clear the capabilities", result);
  return kGood;
}

// Newer than the headers that we are built with.
struct RulesetAttributes {
  uint64_t handled_fs;
  uint64_t handled_net;  // ABI 4
  uint64_t scoped;       // ABI 6
};
constexpr uint64_t kTcp = 3;                // bind and connect
constexpr uint64_t kScopes = 3;             // abstract sockets and signals
constexpr uint64_t kTruncate = 1 << 14;     // ABI 3
constexpr uint64_t kRefer = 1 << 13;        // ABI 2
constexpr uint64_t kDeviceIoctl = 1 << 15;  // ABI 5

RulesetAttributes Handled(long abi) {
  RulesetAttributes attributes{(1 << 13) - 1, 0, 0};
  if (abi >= 2) attributes.handled_fs |= kRefer;
  if (abi >= 3) attributes.handled_fs |= kTruncate;
  if (abi >= 5) attributes.handled_fs |= kDeviceIoctl;
  if (abi >= 4) attributes.handled_net = kTcp;
  if (abi >= 6) attributes.scoped = kScopes;
  return attributes;
}

long AllowBeneath(long ruleset, const char* path, uint64_t access) {
  const long fd = Kernel(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = static_cast<int>(fd);
  const long result = Kernel(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  Kernel(__NR_close, fd);
  return result;
}

Failure Landlock(const ServeOptions& options) {
  const long abi =
      Kernel(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return kGood;  // not mandatory; the supervisor's report says so
  const RulesetAttributes handled = Handled(abi);
  const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const long ruleset = Kernel(__NR_landlock_create_ruleset, &handled, size, 0);
  if (ruleset < 0) return Failed(CallWall::kLandlock, "make a Landlock ruleset", ruleset);
  uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  if (options.may_execute != 0) read |= LANDLOCK_ACCESS_FS_EXECUTE;
  const uint64_t special = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                           LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                           LANDLOCK_ACCESS_FS_EXECUTE | kDeviceIoctl;
  long result = AllowBeneath(ruleset, "/", read);
  if (result == 0) result = AllowBeneath(ruleset, "/tmp", handled.handled_fs & ~special);
  if (result == 0) result = AllowBeneath(ruleset, "/dev", read | LANDLOCK_ACCESS_FS_WRITE_FILE);
  if (result == 0) result = Kernel(__NR_landlock_restrict_self, ruleset, 0);
  Kernel(__NR_close, ruleset);
  return result == 0 ? kGood : Failed(CallWall::kLandlock, "put Landlock up", result);
}

}  // namespace

bool LeftOut(const ServeOptions& options, CallWall wall) {
  return (options.leave_out >> static_cast<uint32_t>(wall) & 1) != 0;
}

uint64_t NamespaceFlags(const ServeOptions& options) {
  constexpr struct {
    CallWall wall;
    uint64_t flag;
  } kNamespaces[] = {
      {CallWall::kUserNamespace, CLONE_NEWUSER},     {CallWall::kPidNamespace, CLONE_NEWPID},
      {CallWall::kMountNamespace, CLONE_NEWNS},      {CallWall::kNetworkNamespace, CLONE_NEWNET},
      {CallWall::kIpcNamespace, CLONE_NEWIPC},       {CallWall::kUtsNamespace, CLONE_NEWUTS},
      {CallWall::kCgroupNamespace, CLONE_NEWCGROUP},
  };
  uint64_t flags = 0;
  for (const auto& entry : kNamespaces) {
    if (!LeftOut(options, entry.wall)) flags |= entry.flag;
  }
  return flags;
}

Failure PrepareNamespaces(const ServeOptions& options, uint32_t outer_user, uint32_t outer_group,
                          Sizes& sizes) {
  if (const long result = ReadSizes(sizes)) {
    return Failed(CallWall::kResourceLimits, "read /proc/self/statm", result);
  }
  if (!LeftOut(options, CallWall::kUserNamespace)) {
    const Failure failure = MapUser(outer_user, outer_group);
    if (failure.error != 0) return failure;
  }
  if (LeftOut(options, CallWall::kMountNamespace)) return kGood;
  const long result = Kernel(__NR_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (result < 0) return Failed(CallWall::kMountNamespace, "make mounts private", result);
  return MountProc();
}

Failure PutUpWalls(const ServeOptions& options, const CallRequest& request, const Sizes& sizes) {
  if (!LeftOut(options, CallWall::kMountNamespace)) {
    if (const Failure failure = MountTmp(request); failure.error != 0) return failure;
  }
  if (!LeftOut(options, CallWall::kResourceLimits)) {
    if (const Failure failure = LowerLimits(request, sizes); failure.error != 0) return failure;
  }
  if (!LeftOut(options, CallWall::kCapabilities)) {
    if (const Failure failure = DropCapabilities(); failure.error != 0) return failure;
  }
  if (!LeftOut(options, CallWall::kLandlock)) {
    if (const Failure failure = Landlock(options); failure.error != 0) return failure;
  }
  Kernel(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  return kGood;
}

Failure PlaceDescriptors(const ServeOptions& options, const int* fds, int socket) {
  // Received descriptors may stand in the places that others are to take, so all move up first.
  constexpr int kAbove = kChannelFd + 16;
  for (int i = 0; i < kRequestFds; ++i) {
    const long result = Kernel(__NR_dup3, fds[i], kAbove + i, O_CLOEXEC);
    if (result < 0) return Failed(CallWall::kCleanStart, "move a descriptor", result);
  }
  if (const long result = Kernel(__NR_dup3, socket, kAbove + kRequestFds, O_CLOEXEC); result < 0) {
    return Failed(CallWall::kCleanStart, "move a descriptor", result);
  }
  constexpr struct {
    int from, to;
  } kPlaces[] = {{kJob, kJobFd},
                 {kStdout, 1},
                 {kStderr, 2},
                 {kChannel, kChannelFd},
                 {kRequestFds, kSetUpSocketFd}};
  for (const auto& place : kPlaces) {
    const int flags = place.to > 2 ? O_CLOEXEC : 0;
    const long result = Kernel(__NR_dup3, kAbove + place.from, place.to, flags);
    if (result < 0) return Failed(CallWall::kCleanStart, "place a descriptor", result);
  }
  if (LeftOut(options, CallWall::kCleanStart)) return kGood;
  long result = Kernel(__NR_close_range, kJobFd + 1, kChannelFd - 1, 0);
  if (result == 0) result = Kernel(__NR_close_range, kSetUpSocketFd + 1, ~0u, 0);
  if (result < 0) return Failed(CallWall::kCleanStart, "close the other descriptors", result);
  return kGood;
}

Failure LoadFilter(const ServeOptions& options) {
  if (LeftOut(options, CallWall::kSeccomp)) return kGood;
  const sock_fprog program = {
      .len = static_cast<unsigned short>(options.filter_length),
      .filter = static_cast<sock_filter*>(const_cast<void*>(options.filter)),
  };
  const long result = Kernel(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  return result == 0 ? kGood : Failed(CallWall::kSeccomp, "load the filter", result);
}

}  // namespace caisson::isolate::native
