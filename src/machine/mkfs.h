// SPDX-License-Identifier: Apache-2.0
// The file system of a machine's disk, whoever mounts it: ext4 without reserved blocks, an inode
// for each 16 KiB, and a journal that is small beside it (mke2fs(8)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/run_program.h"

namespace caisson::machine {

inline constexpr std::uint64_t kDiskBlockBytes = 4096;

// Makes one for a disk of `disk_bytes` in `file`, which has its size. `extended` goes to -E;
// `features` are more words of the command.
Result<os::ProgramEnd> RunMkfs(const std::string& file, std::uint64_t disk_bytes,
                               const std::string& extended,
                               const std::vector<std::string>& features = {});

}  // namespace caisson::machine
