// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/walk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace caisson::agent::guest {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

os::UniqueFd Failed(int error) {
  errno = error;
  return {};
}

// The text of a link; empty and errno when it may not be followed. Of procfs only links that say
// another entry of it are ordinary ones: "self/mounts", not "/a/file", "pipe:[1]".
std::string TargetOf(int link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(link, "", text.data(), text.size());
  if (size <= 0) {
    if (size == 0) errno = ENOENT;
    return "";
  }
  std::string target(text.data(), static_cast<std::size_t>(size));
  struct statfs about{};
  if (::fstatfs(link, &about) != 0) return "";
  if (about.f_type == PROC_SUPER_MAGIC &&
      (target.front() == '/' || target.find(':') != std::string::npos)) {
    errno = ELOOP;
    return "";
  }
  return target;
}

class Walk {
 public:
  Walk(int folder, const std::string& path, int flags) : rest_(path), flags_(flags) {
    Begin(folder);
  }

  os::UniqueFd Go() {
    while (at_.valid()) {
      const std::string name = TakeName();
      const bool is_last = rest_.find_first_not_of('/') == std::string::npos;
      if (name.empty()) return Reopen(".", flags_);
      if (is_last && !rest_.empty()) flags_ |= O_DIRECTORY;
      os::UniqueFd next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat about{};
      if (!next.valid() || ::fstat(next.get(), &about) != 0) return {};
      if (S_ISLNK(about.st_mode) && !(is_last && KeepsLink())) {
        if (is_last && (flags_ & O_NOFOLLOW) != 0) return Failed(ELOOP);
        if (!Follow(next.get())) return {};
      } else if (is_last) {
        return Reopen(name.c_str(), flags_ | O_NOFOLLOW);
      } else if (!S_ISDIR(about.st_mode)) {
        return Failed(ENOTDIR);
      } else {
        at_ = std::move(next);
      }
    }
    return {};
  }

 private:
  void Begin(int folder) {
    const char* from = rest_.starts_with('/') ? "/" : ".";
    at_.Reset(::openat(folder, from, O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  // The link itself is what is wanted.
  bool KeepsLink() const {
    constexpr int kItself = O_PATH | O_NOFOLLOW;
    return (flags_ & kItself) == kItself && (flags_ & O_DIRECTORY) == 0;
  }
  std::string TakeName() {
    const std::size_t begin = std::min(rest_.find_first_not_of('/'), rest_.size());
    const std::size_t end = std::min(rest_.find('/', begin), rest_.size());
    std::string name = rest_.substr(begin, end - begin);
    rest_.erase(0, end);
    return name;
  }
  bool Follow(int link) {
    const std::string target = ++links_ > kMostLinks ? "" : TargetOf(link);
    if (links_ > kMostLinks) errno = ELOOP;
    if (target.empty()) return false;
    rest_ = target + rest_;
    if (rest_.size() >= PATH_MAX) errno = ENAMETOOLONG;
    if (rest_.size() >= PATH_MAX) return false;
    if (rest_.starts_with('/')) Begin(AT_FDCWD);
    return at_.valid();
  }
  os::UniqueFd Reopen(const char* name, int flags) const {
    return os::UniqueFd(::openat(at_.get(), name, flags | O_CLOEXEC));
  }

  std::string rest_;
  int flags_;
  int links_ = 0;
  os::UniqueFd at_;
};

}  // namespace

os::UniqueFd WalkPath(int folder, const std::string& path, int flags, bool one_device) {
  if (path.empty()) return Failed(ENOENT);
  os::UniqueFd found = Walk(folder, path, flags).Go();
  if (!found.valid() || !one_device) return found;
  struct stat from{};
  struct stat to{};
  if (::fstatat(folder, "", &from, AT_EMPTY_PATH) != 0 || ::fstat(found.get(), &to) != 0) return {};
  return from.st_dev == to.st_dev ? std::move(found) : Failed(EXDEV);
}

}  // namespace caisson::agent::guest
