// SPDX-License-Identifier: Apache-2.0
// Disks with an empty file system, for guests that mount them: copies of a few that are kept,
// formatted, the least recently used of which goes for one of another size. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

class EmptyDisks {
 public:
  static constexpr std::size_t kKept = 8;

  // Keeps them in `directory`, which is there and ours alone.
  explicit EmptyDisks(std::string directory) : directory_(std::move(directory)) {}

  // `file` must not exist; of `bytes`, a multiple of 4,096. Fails with machine.full.
  Result<void> Make(std::uint64_t bytes, const std::string& file);

 private:
  Result<os::UniqueFd> Find(std::uint64_t bytes);
  void DropOldest();

  const std::string directory_;
  std::mutex mutex_;
};

}  // namespace caisson::machine::microvm
