// SPDX-License-Identifier: Apache-2.0
#include "machine/loop_devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kDevices = "/dev/";
constexpr std::uint32_t kBlockBytes = 4096;

// The file behind a device ("loop7"); empty when it is not attached.
std::string FileBehind(const std::string& name) {
  auto file = os::ReadSmallFile("/sys/block/" + name + "/loop/backing_file").value_or("");
  if (file.ends_with('\n')) file.pop_back();
  return file;
}

// Calls `visit` with every attached loop device and the file behind it, until it returns false.
void ForEachLoop(const std::function<bool(const std::string& device, std::string file)>& visit) {
  DIR* blocks = ::opendir("/sys/block");
  if (blocks == nullptr) return;
  while (const dirent* entry = ::readdir(blocks)) {
    const std::string name = entry->d_name;
    if (!name.starts_with("loop")) continue;
    std::string file = FileBehind(name);
    if (file.empty()) continue;
    if (!visit(std::string(kDevices) + name, std::move(file))) break;
  }
  ::closedir(blocks);
}

// True when nobody has the file open for writing, as a loop device has its own: the kernel leases
// it to a reader only then (fcntl(2), F_SETLEASE). False when that cannot be known.
bool IsUnwritten(const std::string& file) {
  const auto opened = os::OpenFile(file, O_RDONLY);
  // Whoever opens it in between waits for these two calls, and SIGURG is ignored by default.
  if (!opened || ::fcntl(opened->get(), F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(opened->get(), F_SETLEASE, F_RDLCK) != 0) return false;
  (void)::fcntl(opened->get(), F_SETLEASE, F_UNLCK);
  return true;
}

// Where files were found last, for which a look at all loop devices is spared.
class KnownLoops {
 public:
  std::string Of(const std::string& file) {
    const std::lock_guard lock(mutex_);
    const auto known = devices_.find(file);
    return known == devices_.end() ? "" : known->second;
  }
  void Set(const std::string& file, const std::string& device) {
    const std::lock_guard lock(mutex_);
    if (device.empty()) {
      devices_.erase(file);
    } else {
      if (devices_.size() == kMost) devices_.clear();  // of disks that were moved or removed
      devices_[file] = device;
    }
  }

 private:
  static constexpr std::size_t kMost = 4096;

  std::mutex mutex_;
  std::unordered_map<std::string, std::string> devices_;  // "/dev/loop7"
};
KnownLoops& Known() {
  static KnownLoops loops;
  return loops;
}

Result<os::UniqueFd> OpenFreeLoop(int control, std::string& device) {
  const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
  if (number < 0) return os::SyscallError("get a free loop device");
  device = fmt::format("{}loop{}", kDevices, number);
  os::UniqueFd fd(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  for (int attempt = 0; !fd.valid() && errno == ENOENT && attempt < 100; ++attempt) {
    std::this_thread::sleep_for(milliseconds(5));  // whoever makes device nodes is on his way
    fd.Reset(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!fd.valid()) return os::SyscallError("open " + device);
  return fd;
}

}  // namespace

std::string FindLoop(const std::string& file) {
  std::string found = Known().Of(file);
  if (!found.empty() && FileBehind(found.substr(kDevices.size())) == file) return found;
  found.clear();
  if (!IsUnwritten(file)) {
    ForEachLoop([&](const std::string& device, const std::string& backing) {
      if (backing != file) return true;
      found = device;
      return false;
    });
  }
  Known().Set(file, found);
  return found;
}

Result<Loop> AttachLoop(const std::string& file) {
  CAISSON_ASSIGN(const os::UniqueFd backing, os::OpenFile(file, O_RDWR));
  CAISSON_ASSIGN(const os::UniqueFd control, os::OpenFile("/dev/loop-control", O_RDWR));
  for (int attempt = 0;; ++attempt) {
    Loop loop;
    CAISSON_ASSIGN(loop.fd, OpenFreeLoop(control.get(), loop.device));
    loop_config config{};
    config.fd = static_cast<__u32>(backing.get());
    config.block_size = kBlockBytes;
    // Not direct: that makes whoever mounts a fresh copy wait until it has reached the disk.
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(loop.fd.get(), LOOP_CONFIGURE, &config) == 0) {
      Known().Set(file, loop.device);
      return loop;
    }
    // Somebody else got this one in the meantime.
    if (errno != EBUSY || attempt == 200) return os::SyscallError("attach " + loop.device);
    std::this_thread::sleep_for(std::chrono::microseconds(200 * (attempt % 8)));
  }
}

Result<void> RereadSize(int device) {
  if (::ioctl(device, LOOP_SET_CAPACITY) != 0) return os::SyscallError("grow a loop device");
  return {};
}

void DetachStrays(const std::string& directory) {
  std::vector<std::string> strays;
  ForEachLoop([&](const std::string& device, const std::string& file) {
    if (file.starts_with(directory + "/") && file.ends_with(" (deleted)")) {
      strays.push_back(device);
    }
    return true;
  });
  for (const std::string& device : strays) {
    // One that is still mounted goes when its last mount does.
    if (const auto fd = os::OpenFile(device, O_RDWR)) (void)::ioctl(fd->get(), LOOP_CLR_FD, 0);
  }
}

}  // namespace caisson::machine
