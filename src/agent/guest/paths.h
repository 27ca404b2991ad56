// SPDX-License-Identifier: Apache-2.0
// Paths that the host names, as the machine resolves them: from its root, links followed, but never
// through the magic links of /proc, which lead to descriptors of ours.
#pragma once

#include <sys/stat.h>

#include <string>

#include "agent/guest/failure.h"
#include "agent/messages.h"
#include "os/fd.h"

namespace caisson::agent::guest {

// Absolute, without a NUL, not too long.
Attempt<void> CheckPath(const std::string& path);

// openat2(2) for `path`, relative to `folder` unless it is absolute. -1 and errno as ever.
os::UniqueFd OpenPath(int folder, const std::string& path, int flags, std::uint64_t resolve = 0);

// A name in a folder that is open (O_PATH).
struct Place {
  os::UniqueFd folder;
  std::string name;
};
// The folder of the path's last part, and that part. Fails for /, . and ..
Attempt<Place> FindPlace(const std::string& path);
// Where a file of this path is to be written: links at its end followed, missing folders made.
Attempt<Place> MakePlace(const std::string& path);

FileInfo Describe(const struct stat& about);
// "a directory", "a FIFO".
const char* TypeText(mode_t mode);

}  // namespace caisson::agent::guest
