// SPDX-License-Identifier: Apache-2.0
#include "jail/root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace caisson::jail {
namespace {

constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// Runs system calls until one fails; remembers which.
class Steps {
 public:
  explicit Steps(const char*& step) : step_(step) {}
  bool Do(const char* step, long result) noexcept {
    if (result >= 0) return true;
    error_ = errno;
    step_ = step;
    return false;
  }
  int error() const noexcept { return error_; }

 private:
  const char*& step_;
  int error_ = 0;
};

struct Node {
  const char* host;
  const char* inside;
};
constexpr std::array<Node, 5> kNodes = {{{"/dev/null", "dev/null"},
                                         {"/dev/zero", "dev/zero"},
                                         {"/dev/full", "dev/full"},
                                         {"/dev/random", "dev/random"},
                                         {"/dev/urandom", "dev/urandom"}}};
constexpr std::array<std::pair<const char*, const char*>, 5> kLinks = {{
    {"/proc/self/fd", "dev/fd"},
    {"/proc/self/fd/0", "dev/stdin"},
    {"/proc/self/fd/1", "dev/stdout"},
    {"/proc/self/fd/2", "dev/stderr"},
    // One budget for everything that can be written.
    {"/tmp", "dev/shm"},
}};

bool MakeReadOnly(Steps& steps, const char* step, const char* path) noexcept {
  return steps.Do(
      step, ::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kInert, nullptr));
}

bool MountTree(Steps& steps, const char* directory) noexcept {
  const long tree = ::syscall(SYS_open_tree, AT_FDCWD, directory,
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (!steps.Do("open the root file system", tree)) return false;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  const bool good =
      steps.Do("make the root file system read-only",
               ::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                         sizeof attributes)) &&
      // On itself: the one place that is sure to exist.
      steps.Do("mount the root file system",
               ::syscall(SYS_move_mount, tree, "", AT_FDCWD, directory, MOVE_MOUNT_F_EMPTY_PATH));
  ::close(static_cast<int>(tree));
  return good && steps.Do("enter the root file system", ::chdir(directory));
}

bool MountDevices(Steps& steps) noexcept {
  if (!steps.Do("mount a tmpfs on dev/", ::mount("caisson", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC,
                                                 "mode=755,size=64k,nr_inodes=32"))) {
    return false;
  }
  for (const Node& node : kNodes) {
    const int file = ::open(node.inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (!steps.Do("make the place of a device node", file)) return false;
    ::close(file);
    if (!steps.Do("bind a device node",
                  ::mount(node.host, node.inside, nullptr, MS_BIND, nullptr))) {
      return false;
    }
  }
  for (const auto& [target, path] : kLinks) {
    if (!steps.Do("make a link in dev/", ::symlink(target, path))) return false;
  }
  return MakeReadOnly(steps, "make dev/ read-only", "dev");
}

bool MountProc(Steps& steps) noexcept {
  if (::mount("proc", "proc", "proc", kInert, nullptr) == 0) return true;
  // Within a container whose own /proc has parts covered, the kernel gives no new one.
  return steps.Do("mount proc/", ::mount("/proc", "proc", nullptr, MS_BIND | MS_REC, nullptr));
}

bool Pivot(Steps& steps) noexcept {
  // With both arguments ".", the old root is stacked on the new one, whence it is detached.
  return steps.Do("pivot_root", ::syscall(SYS_pivot_root, ".", ".")) &&
         steps.Do("detach the old root", ::umount2(".", MNT_DETACH)) &&
         steps.Do("chdir to the new root", ::chdir("/"));
}

}  // namespace

Root::Root(RootOptions options) : options_(std::move(options)) {
  for (const RootFile& file : options_.files) {
    for (std::size_t at = file.path.find('/'); at != std::string::npos;
         at = file.path.find('/', at + 1)) {
      const std::string directory = file.path.substr(0, at);
      if (directory != "run" && std::ranges::find(directories_, directory) == directories_.end()) {
        directories_.push_back(directory);
      }
    }
  }
  tmp_data_ = "mode=1777,size=" + std::to_string(options_.tmp_bytes);
}

int Root::WriteFiles(const char*& step) const noexcept {
  Steps steps(step);
  for (const std::string& directory : directories_) {
    if (!steps.Do("make a directory in run/", ::mkdir(directory.c_str(), 0755))) {
      return steps.error();
    }
  }
  for (const RootFile& file : options_.files) {
    const int fd = ::open(file.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
    if (!steps.Do("make a file in run/", fd)) return steps.error();
    std::size_t done = 0;
    while (done < file.content.size()) {
      const ssize_t n = ::write(fd, file.content.data() + done, file.content.size() - done);
      if (!steps.Do("write a file in run/", n)) break;
      done += static_cast<std::size_t>(n);
    }
    ::close(fd);
    if (done < file.content.size()) return steps.error();
  }
  return 0;
}

int Root::Enter(const char*& step) const noexcept {
  Steps steps(step);
  const bool mounted =
      steps.Do("make mounts private",
               ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) &&
      MountTree(steps, options_.directory.c_str()) &&
      steps.Do("mount a tmpfs on tmp/",
               ::mount("caisson", "tmp", "tmpfs", kInert, tmp_data_.c_str())) &&
      // Libraries of ours are loaded from it.
      steps.Do("mount a tmpfs on run/",
               ::mount("caisson", "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m"));
  if (!mounted) return steps.error();
  if (const int error = WriteFiles(step)) return error;
  const bool entered =
      steps.Do("make run/ read-only",
               ::mount(nullptr, "run", nullptr,
                       MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr)) &&
      MountDevices(steps) && MountProc(steps) && Pivot(steps);
  return entered ? 0 : steps.error();
}

}  // namespace caisson::jail
