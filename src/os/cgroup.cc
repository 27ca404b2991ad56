// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

constexpr std::uint64_t kCpuPeriodMicroseconds = 100'000;

bool HasWord(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

struct CgroupMount {
  std::string root;   // which part of the hierarchy is mounted
  std::string point;  // where
  int version = 0;
  std::string options;  // v1: the controllers among them
};

std::vector<CgroupMount> CgroupMounts(const std::string& mountinfo) {
  std::vector<CgroupMount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, word, type, source;
    CgroupMount mount;
    fields >> id >> parent >> device >> mount.root >> mount.point;
    while (fields >> word && word != "-") {
    }
    fields >> type >> source >> mount.options;
    if (type == "cgroup") mount.version = 1;
    if (type == "cgroup2") mount.version = 2;
    if (mount.version != 0) mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The path of our own group in the hierarchy of `controller` (v1) or in the v2 one (empty name).
std::string OwnPath(const std::string& own_groups, std::string_view controller) {
  std::istringstream lines(own_groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : HasWord(names, controller, ',')) {
      return line.substr(second + 1);
    }
  }
  return {};
}

std::string Directory(const CgroupMount& mount, std::string path) {
  if (mount.root != "/" && path.starts_with(mount.root)) path.erase(0, mount.root.size());
  if (path == "/") path.clear();
  return mount.point + path;
}

bool Writable(const std::string& directory) { return ::access(directory.c_str(), W_OK) == 0; }

void PlaceV1(const CgroupMount& mount, const std::string& own_groups, ControllerPlace& place) {
  const std::string own = Directory(mount, OwnPath(own_groups, ControllerName(place.controller)));
  if (!Writable(own)) {
    place.reason = own + " (v1) is not writable for us";
    return;
  }
  place.version = 1;
  place.parent = own;
}

// In v2 a group that has processes hands no controllers down, the root excepted; so the nearest
// ancestor that does is taken.
void PlaceV2(const CgroupMount& mount, const std::string& own_groups, ControllerPlace& place) {
  const std::string name = ControllerName(place.controller);
  const auto available = ReadSmallFile(mount.point + "/cgroup.controllers");
  std::string directory = Directory(mount, OwnPath(own_groups, ""));
  for (;;) {
    const auto handed_down = ReadSmallFile(directory + "/cgroup.subtree_control");
    if (handed_down) {
      const std::string_view words(*handed_down);
      if (HasWord(words.substr(0, words.find('\n')), name, ' ')) break;
    }
    if (directory.size() <= mount.point.size()) {
      const bool exists =
          available &&
          HasWord(std::string_view(*available).substr(0, available->find('\n')), name, ' ');
      place.reason = exists ? "no cgroup above ours hands the controller down (v2)"
                            : "the cgroup v2 hierarchy does not have the controller";
      return;
    }
    directory.erase(directory.rfind('/'));
  }
  if (!Writable(directory)) {
    place.reason = directory + " (v2) is not writable for us";
    return;
  }
  place.version = 2;
  place.parent = directory;
}

ControllerPlace FindPlace(const std::vector<CgroupMount>& mounts, const std::string& own_groups,
                          Controller controller) {
  ControllerPlace place{.controller = controller};
  place.reason = "no cgroup hierarchy with this controller is mounted";
  for (const CgroupMount& mount : mounts) {
    if (mount.version == 1 && HasWord(mount.options, ControllerName(controller), ',')) {
      PlaceV1(mount, own_groups, place);
      return place;
    }
  }
  for (const CgroupMount& mount : mounts) {
    if (mount.version == 2 && place.version == 0) PlaceV2(mount, own_groups, place);
  }
  return place;
}

Result<void> LimitMemory(const std::string& directory, int version, std::uint64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (version == 1) {
    CAISSON_TRY(WriteSmallFile(directory + "/memory.limit_in_bytes", value));
    // Absent without swap accounting.
    (void)WriteSmallFile(directory + "/memory.memsw.limit_in_bytes", value);
    return {};
  }
  CAISSON_TRY(WriteSmallFile(directory + "/memory.max", value));
  (void)WriteSmallFile(directory + "/memory.swap.max", "0");
  (void)WriteSmallFile(directory + "/memory.oom.group", "1");
  return {};
}

Result<void> LimitCpu(const std::string& directory, int version, double cpus) {
  const auto quota = std::to_string(
      static_cast<std::uint64_t>(cpus * static_cast<double>(kCpuPeriodMicroseconds)));
  const auto period = std::to_string(kCpuPeriodMicroseconds);
  if (version == 2) return WriteSmallFile(directory + "/cpu.max", quota + " " + period);
  CAISSON_TRY(WriteSmallFile(directory + "/cpu.cfs_period_us", period));
  return WriteSmallFile(directory + "/cpu.cfs_quota_us", quota);
}

Result<void> Limit(Controller controller, const std::string& directory, int version,
                   const CgroupLimits& limits) {
  switch (controller) {
    case Controller::kMemory:
      if (limits.memory_bytes == 0) return {};
      return LimitMemory(directory, version, limits.memory_bytes);
    case Controller::kCpu:
      if (limits.cpus <= 0) return {};
      return LimitCpu(directory, version, limits.cpus);
    case Controller::kPids:
      if (limits.pids == 0) return {};
      return WriteSmallFile(directory + "/pids.max", std::to_string(limits.pids));
  }
  return {};
}

bool RemoveGroup(const std::string& directory) {
  // A killed process leaves its group a little after it was reaped.
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

constexpr std::string_view kNameStart = "caisson.";

// In clock ticks since boot; 0 when it cannot be known.
std::uint64_t StartOf(const std::string& process) {
  const auto text = ReadSmallFile("/proc/" + process + "/stat");
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;  // counted as in proc(5)
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

// In which a pid has its meaning; 0 when it cannot be known.
std::uint64_t PidNamespace() {
  struct stat info{};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

// Whether the process is gone that gave a group this name. Of pids of other namespaces we know
// nothing.
bool IsStale(std::string_view name) {
  if (!name.starts_with(kNameStart)) return false;
  name.remove_prefix(kNameStart.size());
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::uint64_t pid_namespace = 0;
  const char* const begin = name.data();
  const char* const end = begin + name.size();
  const char* at = std::from_chars(begin, end, pid).ptr;
  if (at != end && *at == '-') at = std::from_chars(at + 1, end, start).ptr;
  if (at != end && *at == '-') std::from_chars(at + 1, end, pid_namespace);
  if (pid <= 0 || (pid_namespace != 0 && pid_namespace != PidNamespace())) return false;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  const std::uint64_t actual = StartOf(std::to_string(pid));
  return start != 0 && actual != 0 && actual != start;
}

void SweepDirectory(const std::string& parent, Cgroup::Swept& swept) {
  DIR* directory = ::opendir(parent.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    if (!IsStale(entry->d_name)) continue;
    std::string group = parent + "/" + entry->d_name;
    const bool removed = ::rmdir(group.c_str()) == 0;
    (removed ? swept.removed : swept.left).push_back(std::move(group));
  }
  ::closedir(directory);
}

}  // namespace

std::uint64_t NumberIn(const std::string& path, std::string_view key) {
  const auto text = ReadSmallFile(path);
  if (!text) return 0;
  std::size_t at = 0;
  if (!key.empty()) {
    at = text->find(std::string(key) + " ");
    if (at == std::string::npos) return 0;
    at += key.size() + 1;
  }
  std::uint64_t number = 0;
  std::from_chars(text->data() + at, text->data() + text->size(), number);
  return number;
}

const char* ControllerName(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kCpu:
      return "cpu";
    case Controller::kPids:
      return "pids";
  }
  return "";
}

std::array<ControllerPlace, 3> FindControllers() {
  // What cannot be read names no hierarchy.
  return FindControllers(ReadSmallFile("/proc/self/mountinfo").value_or(""),
                         ReadSmallFile("/proc/self/cgroup").value_or(""));
}

std::array<ControllerPlace, 3> FindControllers(const std::string& mountinfo,
                                               const std::string& own_groups) {
  const std::vector<CgroupMount> mounts = CgroupMounts(mountinfo);
  std::array<ControllerPlace, 3> places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = FindPlace(mounts, own_groups, kControllers[i]);
  }
  return places;
}

std::string FindUnifiedParent() {
  return FindUnifiedParent(ReadSmallFile("/proc/self/mountinfo").value_or(""),
                           ReadSmallFile("/proc/self/cgroup").value_or(""));
}

std::string FindUnifiedParent(const std::string& mountinfo, const std::string& own_groups) {
  // Groups with controllers lie where those are handed down.
  for (const ControllerPlace& place : FindControllers(mountinfo, own_groups)) {
    if (place.version == 2) return place.parent;
  }
  for (const CgroupMount& mount : CgroupMounts(mountinfo)) {
    if (mount.version != 2) continue;
    const std::string own = Directory(mount, OwnPath(own_groups, ""));
    if (Writable(own)) return own;
  }
  return {};
}

std::string FindFreezerParent() {
  return FindFreezerParent(ReadSmallFile("/proc/self/mountinfo").value_or(""),
                           ReadSmallFile("/proc/self/cgroup").value_or(""));
}

std::string FindFreezerParent(const std::string& mountinfo, const std::string& own_groups) {
  for (const CgroupMount& mount : CgroupMounts(mountinfo)) {
    if (mount.version != 1 || !HasWord(mount.options, "freezer", ',')) continue;
    const std::string own = Directory(mount, OwnPath(own_groups, "freezer"));
    if (Writable(own)) return own;
  }
  return {};
}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this == &other) return *this;
  Remove();
  directories_ = std::exchange(other.directories_, {});
  refused_ = std::exchange(other.refused_, {});
  memory_directory_ = std::exchange(other.memory_directory_, {});
  memory_version_ = other.memory_version_;
  return *this;
}

std::string Cgroup::NamePrefix() {
  return std::string(kNameStart) + std::to_string(::getpid()) + "-" +
         std::to_string(StartOf("self")) + "-" + std::to_string(PidNamespace()) + ".";
}

void Cgroup::AddController(const ControllerPlace& place, const std::string& name,
                           const CgroupLimits& limits) {
  const std::string directory = place.parent + "/" + name;
  const bool had = std::ranges::find(directories_, directory) != directories_.end();
  if (!had && ::mkdir(directory.c_str(), 0755) != 0) {
    refused_.push_back({place.controller, "mkdir " + directory + ": " + ErrnoText(errno)});
    return;
  }
  if (!had) directories_.push_back(directory);
  if (auto limited = Limit(place.controller, directory, place.version, limits); !limited) {
    refused_.push_back({place.controller, limited.error().message});
    return;
  }
  if (place.controller == Controller::kMemory) {
    memory_directory_ = directory;
    memory_version_ = place.version;
  }
}

Cgroup Cgroup::Make(const std::string& name, const CgroupLimits& limits) {
  Cgroup group;
  for (const ControllerPlace& place : FindControllers()) {
    if (place.version == 0) {
      group.refused_.push_back({place.controller, place.reason});
    } else {
      group.AddController(place, name, limits);
    }
  }
  return group;
}

Cgroup Cgroup::Adopt(const std::string& name) {
  Cgroup group;
  for (const ControllerPlace& place : FindControllers()) {
    if (place.version == 0) continue;
    std::string directory = place.parent + "/" + name;
    if (place.controller == Controller::kMemory) {
      group.memory_directory_ = directory;
      group.memory_version_ = place.version;
    }
    if (std::ranges::find(group.directories_, directory) != group.directories_.end()) continue;
    group.directories_.push_back(std::move(directory));
  }
  return group;
}

Cgroup::Swept Cgroup::Sweep() {
  Swept swept;
  for (const ControllerPlace& place : FindControllers()) {
    if (place.version != 0) SweepDirectory(place.parent, swept);
  }
  return swept;
}

Result<void> Cgroup::Attach(pid_t pid) {
  for (const std::string& directory : directories_) {
    CAISSON_TRY(WriteSmallFile(directory + "/cgroup.procs", std::to_string(pid)));
  }
  return {};
}

std::uint64_t Cgroup::OomKills() const {
  if (memory_directory_.empty()) return 0;
  return NumberIn(
      memory_directory_ + (memory_version_ == 1 ? "/memory.oom_control" : "/memory.events"),
      "oom_kill");
}

std::uint64_t Cgroup::MemoryBytes() const {
  if (memory_directory_.empty()) return 0;
  return NumberIn(
      memory_directory_ + (memory_version_ == 1 ? "/memory.usage_in_bytes" : "/memory.current"),
      "");
}

std::uint64_t Cgroup::PeakMemoryBytes() const {
  if (memory_directory_.empty()) return 0;
  const std::uint64_t peak = NumberIn(
      memory_directory_ + (memory_version_ == 1 ? "/memory.max_usage_in_bytes" : "/memory.peak"),
      "");
  return peak != 0 ? peak : MemoryBytes();  // before Linux 5.19 version 2 tells no peak
}

void Cgroup::Remove() {
  for (const std::string& directory : directories_) RemoveGroup(directory);
  directories_.clear();
  memory_directory_.clear();
}

}  // namespace caisson::os
