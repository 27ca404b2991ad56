// SPDX-License-Identifier: Apache-2.0
// A directory tree on its way to becoming the root of an image. Links are never followed and mount
// points never entered, whatever a package has put there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "base/status.h"

namespace caisson::images {

// One thing of a tree. `relative` has no leading slash.
struct TreeEntry {
  std::string path;
  std::string relative;
  struct stat info{};
};

// Every entry below `root` but not `root` itself, sorted by path, a directory before what it
// holds. Fails with images.store, and with images.tree at a mount point.
Result<std::vector<TreeEntry>> WalkTree(const std::string& root);

// Removes `path` and everything below it; nothing when it does not exist. Fails with images.store,
// and with images.tree, before anything is removed, when something is mounted inside.
Result<void> RemoveTree(const std::string& path);

// Removes what `patterns` name, directories with all they hold. "usr/share/doc" and "etc/*.conf"
// are paths from the root (an asterisk does not cross a slash); "**/__pycache__" is a last
// component anywhere, "usr/lib/**/tests" one anywhere below. Fails with images.definition when a
// pattern matches nothing, since then the list no longer says what it does, else as above.
Result<void> RemoveMatches(const std::string& root, const std::vector<std::string>& patterns);

// Gives every entry the one form it may have in an image: owner root (when we may), directories
// 0755 (0700 is kept), files 0644 or 0755, neither set-user-id nor group write, times `epoch`. The
// directory `tmp` is 1777. Fails with images.tree when there is a device, a socket or a pipe.
Result<void> NormaliseTree(const std::string& root, std::int64_t epoch);

}  // namespace caisson::images
