// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

#include "agent/guest/walk.h"

namespace caisson::agent::guest {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr mode_t kFolderMode = 0755;

struct Split {
  std::string folder;
  std::string name;
};

Split SplitPath(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

bool IsName(const std::string& name) { return !name.empty() && name != "." && name != ".."; }

// The folder of this absolute path; what is missing of it is made.
Attempt<os::UniqueFd> MakeFolders(const std::string& path) {
  os::UniqueFd folder = OpenPath(AT_FDCWD, path, O_PATH | O_DIRECTORY);
  if (folder.valid()) return folder;
  if (errno != ENOENT) return FileFailure("open the directory " + path, errno);
  folder = OpenPath(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  for (std::size_t begin = 0; begin < path.size() && folder.valid();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    os::UniqueFd next = OpenPath(folder.get(), part, O_PATH | O_DIRECTORY);
    if (!next.valid() && errno == ENOENT) {
      if (::mkdirat(folder.get(), part.c_str(), kFolderMode) != 0 && errno != EEXIST) {
        return FileFailure("make the directory " + path.substr(0, end), errno);
      }
      next = OpenPath(folder.get(), part, O_PATH | O_DIRECTORY);
    }
    if (!next.valid()) return FileFailure("open the directory " + path.substr(0, end), errno);
    folder = std::move(next);
  }
  return folder;
}

FileType TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kLink;
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFREG:
      return FileType::kFile;
    default:
      return FileType::kDevice;
  }
}

}  // namespace

Attempt<void> CheckPath(const std::string& path) {
  if (!path.starts_with('/')) {
    return Fail(FailureKind::kBadRequest, "the path " + path + " is not absolute; begin it with /");
  }
  if (path.find('\0') != std::string::npos) {
    return Fail(FailureKind::kBadRequest, "a path cannot hold a NUL character");
  }
  if (path.size() >= PATH_MAX) {
    return Fail(FailureKind::kBadRequest,
                "the path has " + std::to_string(path.size()) + " bytes; at most 4095 are allowed");
  }
  return {};
}

os::UniqueFd OpenPath(int folder, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_MAGICLINKS | resolve;
  os::UniqueFd found(
      static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
  if (found.valid() || errno != ENOSYS) return found;
  return WalkPath(folder, path, flags, (resolve & RESOLVE_NO_XDEV) != 0);
}

Attempt<Place> FindPlace(const std::string& path) {
  if (auto checked = CheckPath(path); !checked) return std::unexpected(checked.error());
  Split split = SplitPath(path);
  if (!IsName(split.name)) {
    return Fail(FailureKind::kBadRequest, "the path " + path + " does not end with a name");
  }
  os::UniqueFd folder = OpenPath(AT_FDCWD, split.folder, O_PATH | O_DIRECTORY);
  if (!folder.valid()) return FileFailure("open the directory of " + path, errno);
  return Place{std::move(folder), std::move(split.name)};
}

Attempt<Place> MakePlace(const std::string& path) {
  if (auto checked = CheckPath(path); !checked) return std::unexpected(checked.error());
  std::string at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    if (at.ends_with('/')) return Fail(FailureKind::kNotAFile, path + " names a directory");
    Split split = SplitPath(at);
    if (!IsName(split.name)) return Fail(FailureKind::kNotAFile, path + " names a directory");
    auto folder = MakeFolders(split.folder);
    if (!folder) return std::unexpected(folder.error());
    std::array<char, PATH_MAX> target{};
    const ssize_t size =
        ::readlinkat(folder->get(), split.name.c_str(), target.data(), target.size());
    if (size < 0 && errno != EINVAL && errno != ENOENT) return FileFailure("look at " + at, errno);
    if (size < 0) return Place{*std::move(folder), std::move(split.name)};
    // The text of a magic link is no path that anybody may follow for it.
    if (!OpenPath(folder->get(), split.name, O_PATH).valid() && errno != ENOENT) {
      return FileFailure("follow the link " + path, errno);
    }
    const std::string_view link(target.data(), static_cast<std::size_t>(size));
    at = link.starts_with('/') ? std::string(link) : split.folder + std::string(link);
    if (at.size() >= PATH_MAX) return FileFailure("follow the link " + path, ENAMETOOLONG);
  }
  return FileFailure("follow the link " + path, ELOOP);
}

FileInfo Describe(const struct stat& about) {
  return {.type = TypeOf(about.st_mode),
          .size = static_cast<std::uint64_t>(about.st_size),
          .mode = about.st_mode & 07777,
          .uid = about.st_uid,
          .gid = about.st_gid,
          .modified_ns = about.st_mtim.tv_sec * 1'000'000'000LL + about.st_mtim.tv_nsec,
          .link_target = {}};
}

const char* TypeText(mode_t mode) {
  switch (TypeOf(mode)) {
    case FileType::kFile:
      return "a file";
    case FileType::kDirectory:
      return "a directory";
    case FileType::kLink:
      return "a link";
    case FileType::kFifo:
      return "a FIFO";
    case FileType::kSocket:
      return "a socket";
    case FileType::kDevice:
      break;
  }
  return "a device";
}

}  // namespace caisson::agent::guest
