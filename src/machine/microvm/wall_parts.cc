// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/wall_parts.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/capability.h"

namespace caisson::machine::microvm {
namespace {

bool Exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

bool IsLink(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

void GiveUp(const std::string& step, int error) {
  Report report;
  report.error = error != 0 ? error : EPROTO;
  step.copy(report.step, sizeof report.step - 1);
  (void)!::write(kReportFd, &report, sizeof report);
  ::_exit(1);
}

void Must(bool done, const std::string& step) {
  if (!done) GiveUp(step, errno);
}
void Must(const Result<void>& done, const std::string& step) {
  if (!done) GiveUp(step + ": " + done.error().message, EPERM);
}

void RootMaker::Show(const std::string& from, const std::string& to, bool writable) {
  struct stat info{};
  Must(::stat(from.c_str(), &info) == 0, "find " + from);
  MakeParents(to);
  const std::string place = root_ + to;
  if (S_ISDIR(info.st_mode)) {
    Must(::mkdir(place.c_str(), 0755) == 0 || errno == EEXIST, "make " + to);
  } else {
    const int file = ::open(place.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    Must(file >= 0, "make " + to);
    ::close(file);
  }
  Must(::mount(from.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0, "show " + from);
  const bool device = S_ISCHR(info.st_mode);
  const unsigned long flags =
      MS_REMOUNT | MS_BIND | MS_NOSUID | (device ? 0 : MS_NODEV) | (writable ? 0 : MS_RDONLY);
  Must(::mount(nullptr, place.c_str(), nullptr, flags, nullptr) == 0, "protect " + from);
}

void RootMaker::Device(const std::string& path, uid_t user) {
  struct stat info{};
  Must(::stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode), "find " + path);
  MakeParents(path);
  const std::string place = root_ + path;
  Must(::mknod(place.c_str(), S_IFCHR | 0600, info.st_rdev) == 0 &&
           ::chown(place.c_str(), user, user) == 0,
       "make " + path);
  // A mount of its own: the root will have no devices.
  Must(::mount(place.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0, "show " + path);
}

void RootMaker::ShowSystem(const std::string& path) {
  if (IsLink(path)) {
    std::array<char, 256> target{};
    Must(::readlink(path.c_str(), target.data(), target.size() - 1) > 0, "read " + path);
    MakeParents(path);
    Must(::symlink(target.data(), (root_ + path).c_str()) == 0 || errno == EEXIST, "link " + path);
  } else if (Exists(path)) {
    Show(path, path, false);
  }
}

void RootMaker::MakeParents(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = root_ + path.substr(0, at);
    Must(::mkdir(parent.c_str(), 0755) == 0 || errno == EEXIST, "make " + parent);
  }
}

void RootMaker::Tmpfs(const std::string& path, const std::string& options) {
  const std::string place = root_ + path;
  Must(::mkdir(place.c_str(), 0755) == 0 || errno == EEXIST, "make " + path);
  Must(::mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
               options.c_str()) == 0,
       "mount " + path);
}

void LimitFiles(std::uint64_t bytes) {
  rlimit size{};
  ::getrlimit(RLIMIT_FSIZE, &size);
  size.rlim_max = size.rlim_cur = std::min<rlim_t>(size.rlim_max, bytes);
  Must(::setrlimit(RLIMIT_FSIZE, &size) == 0, "lower the limit of files");
}

void JoinGroups(int count) {
  for (int i = 0; i < count; ++i) {
    Must(::write(kFirstTaskFd + i, "0", 1) == 1, "join a cgroup");
    ::close(kFirstTaskFd + i);
  }
}

void EnterRoot() {
  Must(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
  Must(::umount2(".", MNT_DETACH) == 0, "detach the old root");
  Must(::chdir("/") == 0, "enter the new root");
  Must(::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
               nullptr) == 0,
       "make the root read-only");
}

void LoseRights(uid_t id, bool readable) {
  const rlimit none{};
  Must(::setrlimit(RLIMIT_CORE, &none) == 0, "lower a limit");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  Must(::setrlimit(RLIMIT_NOFILE, &files) == 0, "set the limit of files");
  Must(os::EmptyBoundingSet(), "empty the bounding set");
  Must(os::LockSecurebits(), "lock the securebits");
  Must(::setgroups(0, nullptr) == 0, "leave groups");
  Must(::setresgid(id, id, id) == 0, "become another group");
  Must(::setresuid(id, id, id) == 0, "become another user");
  if (const int error = os::ClearCapabilities(); error != 0) GiveUp("lose capabilities", error);
  Must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "set no_new_privs");
  // Lost with the id.
  Must(::prctl(PR_SET_DUMPABLE, readable ? 1 : 0, 0, 0, 0) == 0, "say who may read it");
}

void LoadFilter(std::vector<sock_filter>& filter) {
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                           .filter = filter.data()};
  Must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "load the filter");
}

void ForkBehindWalls(const std::function<void()>& put_up) {
  std::array<int, 2> ready{};
  Must(::pipe2(ready.data(), O_CLOEXEC) == 0, "make a pipe");
  const pid_t child = ::fork();
  Must(child >= 0, "fork");
  if (child == 0) {
    ::close(ready[0]);
    put_up();
    (void)!::write(ready[1], "r", 1);
    ::close(ready[1]);
    ::close(kReportFd);
    return;
  }
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) == 1) {
    Report report;
    report.pid = child;
    (void)!::write(kReportFd, &report, sizeof report);
  }
  ::_exit(0);  // else the child has reported
}

}  // namespace caisson::machine::microvm
