// SPDX-License-Identifier: Apache-2.0
#include "images/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <linux/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <ranges>

#include "errors/images.h"
#include "images/files.h"

namespace caisson::images {
namespace {

// True for the root of a mount, binds of the same file system included.
bool IsMountPoint(const std::string& path) {
  struct statx info{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &info)) {
    return false;
  }
  return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Result<std::vector<std::string>> NamesIn(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return FileError("open directory", path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return FileError("read directory", path);
  std::ranges::sort(names);
  return names;
}

Result<void> WalkInto(const std::string& directory, const std::string& prefix,
                      std::vector<TreeEntry>& entries) {
  CAISSON_ASSIGN(const std::vector<std::string> names, NamesIn(directory));
  for (const std::string& name : names) {
    const std::string path = std::filesystem::path(directory) / name;
    TreeEntry entry{.path = path, .relative = prefix + name};
    if (::lstat(path.c_str(), &entry.info) != 0) return FileError("stat", path);
    const bool is_directory = S_ISDIR(entry.info.st_mode);
    if (IsMountPoint(path)) {
      return Fail(errors::kImagesTree,
                  "something is mounted on " + path + "; unmount it, nothing was changed");
    }
    entries.push_back(std::move(entry));
    if (!is_directory) continue;
    CAISSON_TRY(WalkInto(path, prefix + name + "/", entries));
  }
  return {};
}

// The first `count` components of a path; empty when it has no more than that.
std::string_view Leading(std::string_view path, std::ptrdiff_t count) {
  std::size_t end = 0;
  for (; count > 0; --count) {
    end = path.find('/', end == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return "";
  }
  return path.substr(0, end);
}

bool Matches(const std::string& pattern, const std::string& relative) {
  const std::size_t stars = pattern.find("**/");
  if (stars == std::string::npos) {
    return ::fnmatch(pattern.c_str(), relative.c_str(), FNM_PATHNAME) == 0;
  }
  const std::string name = relative.substr(relative.rfind('/') + 1);
  if (::fnmatch(pattern.c_str() + stars + 3, name.c_str(), 0) != 0) return false;
  if (stars == 0) return true;
  const std::string prefix = pattern.substr(0, stars - 1);
  const std::string leading(Leading(relative, std::ranges::count(prefix, '/') + 1));
  return !leading.empty() && ::fnmatch(prefix.c_str(), leading.c_str(), FNM_PATHNAME) == 0;
}

bool IsBelow(const std::string& relative, const std::string& directory) {
  return relative.size() > directory.size() && relative.starts_with(directory) &&
         relative[directory.size()] == '/';
}

mode_t ModeFor(const TreeEntry& entry) {
  const mode_t mode = entry.info.st_mode;
  if (!S_ISDIR(mode)) return (mode & 0111) != 0 ? 0755 : 0644;
  if (entry.relative == "tmp") return 01777;
  return (mode & 0777) == 0700 ? 0700 : 0755;
}

Result<void> Normalise(const TreeEntry& entry, std::int64_t epoch) {
  const mode_t mode = entry.info.st_mode;
  if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode)) {
    return Fail(errors::kImagesTree, "/" + entry.relative +
                                         " is a device, a socket or a pipe; an image holds files, "
                                         "directories and links only");
  }
  const char* path = entry.path.c_str();
  if (::geteuid() == 0 && ::lchown(path, 0, 0) != 0) return FileError("change the owner of", path);
  if (!S_ISLNK(mode) && ::chmod(path, ModeFor(entry)) != 0) {
    return FileError("change the permissions of", path);
  }
  const timespec times[2] = {{epoch, 0}, {epoch, 0}};
  if (::utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) != 0) {
    return FileError("change the time of", path);
  }
  return {};
}

Result<void> RemoveEntries(const std::vector<TreeEntry>& entries) {
  for (const TreeEntry& entry : entries | std::views::reverse) {
    const int flags = S_ISDIR(entry.info.st_mode) ? AT_REMOVEDIR : 0;
    if (::unlinkat(AT_FDCWD, entry.path.c_str(), flags) != 0)
      return FileError("remove", entry.path);
  }
  return {};
}

}  // namespace

Result<std::vector<TreeEntry>> WalkTree(const std::string& root) {
  std::vector<TreeEntry> entries;
  CAISSON_TRY(WalkInto(root, "", entries));
  return entries;
}

Result<void> RemoveTree(const std::string& path) {
  TreeEntry top{.path = path};
  if (::lstat(path.c_str(), &top.info) != 0) {
    if (errno == ENOENT) return {};
    return FileError("stat", path);
  }
  std::vector<TreeEntry> entries;
  if (S_ISDIR(top.info.st_mode)) {
    CAISSON_ASSIGN(entries, WalkTree(path));
  }
  CAISSON_TRY(RemoveEntries(entries));
  return RemoveEntries({top});
}

Result<void> RemoveMatches(const std::string& root, const std::vector<std::string>& patterns) {
  CAISSON_ASSIGN(const std::vector<TreeEntry> entries, WalkTree(root));
  std::vector<bool> used(patterns.size(), false);
  std::vector<TreeEntry> doomed;
  const TreeEntry* top = nullptr;  // the latest match, which takes along what it holds
  for (const TreeEntry& entry : entries) {
    bool matched = false;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!Matches(patterns[i], entry.relative)) continue;
      matched = used[i] = true;
    }
    const bool below = top != nullptr && IsBelow(entry.relative, top->relative);
    if (matched && !below) top = &entry;
    if (matched || below) doomed.push_back(entry);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    return Fail(errors::kImagesDefinition,
                fmt::format("the pattern '{}' of $.remove matches nothing in the image; take it "
                            "out or correct it",
                            patterns[static_cast<std::size_t>(unused - used.begin())]));
  }
  return RemoveEntries(doomed);
}

Result<void> NormaliseTree(const std::string& root, std::int64_t epoch) {
  CAISSON_ASSIGN(const std::vector<TreeEntry> entries, WalkTree(root));
  for (const TreeEntry& entry : entries) CAISSON_TRY(Normalise(entry, epoch));
  TreeEntry top{.path = root};
  if (::lstat(root.c_str(), &top.info) != 0) return FileError("stat", root);
  top.info.st_mode |= 0777;  // a temporary directory is 0700; the root of an image is not
  return Normalise(top, epoch);
}

}  // namespace caisson::images
