// SPDX-License-Identifier: Apache-2.0
// Files whose sha256 was found right. While such a file has not changed (device, inode, size and
// times), it need not be read again: not here, and not in a process that was told the stamps by one
// that it trusts. For one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::wasm {

class CheckedFiles {
 public:
  CheckedFiles() = default;
  explicit CheckedFiles(std::vector<std::string> stamps) : stamps_(std::move(stamps)) {}

  // Whether the file's sha256 is `digest` (hexadecimal). Fails with os.syscall.
  Result<bool> Holds(int fd, std::string_view digest);
  // Words without blanks, commas and equals signs.
  const std::vector<std::string>& stamps() const { return stamps_; }

 private:
  std::vector<std::string> stamps_;
};

}  // namespace caisson::wasm
