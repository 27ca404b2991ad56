// SPDX-License-Identifier: Apache-2.0
// The root of a jail that runs programs of a root file system: that directory, read-only; small
// tmpfs on /tmp, /run and /dev; five device nodes; a procfs of the jail's own pid namespace. What
// is needed is laid out beforehand, so that Enter can run in the child of a process with threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace caisson::jail {

struct RootFile {
  std::string path;  // "run/caisson/zygote.py"; its directories are made
  std::string content;
};

struct RootOptions {
  std::string directory;              // absolute; has tmp, run, dev and proc
  std::vector<RootFile> files;        // below run/, read-only afterwards
  std::uint64_t tmp_bytes = 1 << 20;  // of /tmp, which is writable
};

class Root {
 public:
  explicit Root(RootOptions options);

  // Makes it the root of the calling process; nothing of the old one can be reached afterwards.
  // Requires a mount namespace of its own and CAP_SYS_ADMIN over it. Async-signal-safe. 0 or an
  // errno, then with `step` saying what failed.
  int Enter(const char*& step) const noexcept;

 private:
  int WriteFiles(const char*& step) const noexcept;

  RootOptions options_;
  std::vector<std::string> directories_;  // of the files, parents first
  std::string tmp_data_;
};

}  // namespace caisson::jail
