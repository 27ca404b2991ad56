// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/empty_disks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/disk.h"
#include "machine/mkfs.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;

// A file system that grows wants a transaction as large as what is reserved for its descriptors,
// and a journal has none beyond a quarter of itself: mkfs would reserve 4 MiB from 8 GiB on, too
// much for the journal here. Beyond this growth the kernel puts descriptors elsewhere.
constexpr std::uint64_t kEasyGrowth = 4;
// Of what Format makes: what was kept by another version is none of this one's.
constexpr int kFormat = 2;

Result<void> Format(std::uint64_t bytes, const std::string& file) {
  const os::UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!made.valid() || ::ftruncate(made.get(), static_cast<off_t>(bytes)) != 0) {
    return os::SyscallError("make " + file);
  }
  const std::string extended =
      fmt::format("nodiscard,lazy_itable_init=1,resize={}", bytes / kDiskBlockBytes * kEasyGrowth);
  // Holes are zeros already; older ones (before 1.47) do not know how to take that for granted.
  auto end = RunMkfs(file, bytes, "assume_storage_prezeroed=1," + extended);
  if (end && !end->succeeded()) end = RunMkfs(file, bytes, extended);
  if (!end) return std::unexpected(end.error());
  if (end->succeeded()) return {};
  return Fail(errors::kMachineFull, "a disk cannot be made: mkfs.ext4 " + os::ToText(end->status) +
                                        ": " + end->messages.substr(0, 200));
}

}  // namespace

Result<os::UniqueFd> EmptyDisks::Find(std::uint64_t bytes) {
  const std::string file = fmt::format("{}/{}-{}.img", directory_, bytes, kFormat);
  const std::lock_guard lock(mutex_);
  os::UniqueFd kept(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (kept.valid()) {
    (void)::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);  // used now
    return kept;
  }
  DropOldest();
  const std::string draft = fmt::format("{}/draft.{}", directory_, ::getpid());
  auto made = Format(bytes, draft);
  if (made && ::rename(draft.c_str(), file.c_str()) != 0) made = os::SyscallError("make " + file);
  if (!made) {
    (void)::unlink(draft.c_str());
    return std::unexpected(made.error());
  }
  return os::OpenFile(file, O_RDONLY);
}

// Makes room for one more.
void EmptyDisks::DropOldest() {
  std::vector<std::pair<fs::file_time_type, fs::path>> kept;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (entry.path().extension() == ".img") {
      kept.emplace_back(entry.last_write_time(error), entry.path());
    }
  }
  std::ranges::sort(kept);
  for (std::size_t i = 0; i + kKept <= kept.size(); ++i) fs::remove(kept[i].second, error);
}

Result<void> EmptyDisks::Make(std::uint64_t bytes, const std::string& file) {
  // Open, so that it may be dropped meanwhile.
  CAISSON_ASSIGN(const os::UniqueFd kept, Find(bytes));
  return CopyDisk(fmt::format("/proc/self/fd/{}", kept.get()), file);
}

}  // namespace caisson::machine::microvm
