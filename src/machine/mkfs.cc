// SPDX-License-Identifier: Apache-2.0
#include "machine/mkfs.h"

namespace caisson::machine {
namespace {

constexpr std::uint64_t kBytesPerInode = 16 << 10;
constexpr std::uint64_t kLargeJournalFrom = 512ull << 20;

}  // namespace

Result<os::ProgramEnd> RunMkfs(const std::string& file, std::uint64_t disk_bytes,
                               const std::string& extended,
                               const std::vector<std::string>& features) {
  const int journal = disk_bytes >= kLargeJournalFrom ? 16 : 4;  // MiB
  std::vector<std::string> arguments = {"mkfs.ext4",
                                        "-q",
                                        "-F",
                                        "-b",
                                        std::to_string(kDiskBlockBytes),
                                        "-m",
                                        "0",
                                        "-L",
                                        "machine",
                                        "-J",
                                        "size=" + std::to_string(journal),
                                        "-N",
                                        std::to_string(disk_bytes / kBytesPerInode)};
  arguments.insert(arguments.end(), features.begin(), features.end());
  arguments.insert(arguments.end(), {"-E", extended, file});
  return os::RunProgram({.arguments = std::move(arguments)});
}

}  // namespace caisson::machine
