// SPDX-License-Identifier: Apache-2.0
// A kind of virtual machine as people write it on a command line: "devbox:1,2,1GiB" is an image, a
// number of processors and a size of memory.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson::cli {

struct PreparedVm {
  std::string image;
  double cpus = 1;
  std::uint64_t memory_bytes = 0;
};
// The error is a sentence.
std::expected<PreparedVm, std::string> ParsePreparedVm(std::string_view text);

}  // namespace caisson::cli
