// SPDX-License-Identifier: Apache-2.0
#include "machine/groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "errors/machine.h"
#include "os/cgroup.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// What the agent has beside the guest's limits; kernel memory of the machine's namespaces and
// mounts is in it.
constexpr std::uint64_t kReservedMemory = 32ull << 20;
constexpr std::uint64_t kReservedPids = 64;
constexpr double kReservedCpus = 1;
constexpr std::uint64_t kCpuPeriodMicroseconds = 100'000;

const char* const kAgent = "/agent";  // version 2 alone: there a group has groups or processes
const char* const kCommands = "/commands";

// What a container runtime makes below an outer group, by the machine's name.
std::string RuntimesGroup(const std::string& outer) {
  return outer + outer.substr(outer.rfind('/'));
}

Result<void> MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return {};
  return os::SyscallError("mkdir " + path);
}

Result<void> LimitMemory(const std::string& directory, int version, std::uint64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (version == 2) {
    CAISSON_TRY(os::WriteSmallFile(directory + "/memory.max", value));
    (void)os::WriteSmallFile(directory + "/memory.swap.max", "0");
    return {};
  }
  CAISSON_TRY(os::WriteSmallFile(directory + "/memory.limit_in_bytes", value));
  // Absent without swap accounting.
  (void)os::WriteSmallFile(directory + "/memory.memsw.limit_in_bytes", value);
  return {};
}

Result<void> LimitCpu(const std::string& directory, int version, double cpus) {
  const auto quota = std::to_string(static_cast<std::uint64_t>(
      std::max(1.0, std::round(cpus * static_cast<double>(kCpuPeriodMicroseconds)))));
  if (version == 2) {
    return os::WriteSmallFile(directory + "/cpu.max",
                              quota + " " + std::to_string(kCpuPeriodMicroseconds));
  }
  return os::WriteSmallFile(directory + "/cpu.cfs_quota_us", quota);
}

// A killed process leaves its group a little after it was reaped, and a group of version 1 its
// parent a little after it was removed.
Result<void> RemoveDirectory(const std::string& directory) {
  for (int attempt = 0;; ++attempt) {
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY || attempt == 500) return os::SyscallError("rmdir " + directory);
    std::this_thread::sleep_for(milliseconds(attempt < 20 ? 1 : 10));
  }
}

// SIGKILL to every process of the group; whether there was one.
bool KillListed(const std::string& directory) {
  const auto text = os::ReadSmallFile(directory + "/cgroup.procs");
  if (!text) return false;
  bool any = false;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    if (parsed.ec != std::errc()) break;
    at = parsed.ptr + 1;
    if (pid <= 0) continue;  // of a pid namespace that we cannot see into
    any = true;
    // The group's own list names living processes; between reading it and now a pid could be
    // another's only after a whole turn of the pid counter.
    ::kill(pid, SIGKILL);
  }
  return any;
}

// Where groups are made. Looked for once: that reads all mounts, of which each machine has some.
struct Parents {
  std::array<os::ControllerPlace, 3> controllers;
  std::string unified, freezer;  // the second where the first is not
};

Result<Parents> FindParents() {
  Parents parents{.controllers = os::FindControllers(), .unified = {}, .freezer = {}};
  for (const os::ControllerPlace& place : parents.controllers) {
    if (place.version != 0) continue;
    return Fail(errors::kMachineUnavailable, std::string("machines need the cgroup controller ") +
                                                 os::ControllerName(place.controller) + ": " +
                                                 place.reason);
  }
  parents.unified = os::FindUnifiedParent();
  if (parents.unified.empty()) parents.freezer = os::FindFreezerParent();
  if (parents.unified.empty() && parents.freezer.empty()) {
    return Fail(errors::kMachineUnavailable,
                "machines need cgroup version 2 or the freezer of version 1, and neither is "
                "mounted and writable");
  }
  return parents;
}

Result<Parents> KnownParents() {
  static std::mutex mutex;
  static std::optional<Parents> known;
  const std::lock_guard lock(mutex);
  if (!known) {
    CAISSON_ASSIGN(known, FindParents());
  }
  return *known;
}

}  // namespace

Result<Groups> Groups::Plan(const std::string& name) {
  CAISSON_ASSIGN(const Parents parents, KnownParents());
  Groups groups;
  const auto add = [&groups](int version, const std::string& directory) -> Hierarchy& {
    for (Hierarchy& hierarchy : groups.hierarchies_) {
      if (hierarchy.directory == directory) return hierarchy;
    }
    return groups.hierarchies_.emplace_back(Hierarchy{.version = version, .directory = directory});
  };
  for (const os::ControllerPlace& place : parents.controllers) {
    Hierarchy& hierarchy = add(place.version, place.parent + "/" + name);
    hierarchy.memory |= place.controller == os::Controller::kMemory;
    hierarchy.cpu |= place.controller == os::Controller::kCpu;
    hierarchy.pids |= place.controller == os::Controller::kPids;
  }
  if (!parents.unified.empty()) {
    add(2, parents.unified + "/" + name);
  } else {
    add(1, parents.freezer + "/" + name).freezer = true;
  }
  return groups;
}

json::Value Groups::ToJson() const {
  json::Array list;
  for (const Hierarchy& hierarchy : hierarchies_) {
    list.emplace_back(json::Object{{"version", hierarchy.version},
                                   {"memory", hierarchy.memory},
                                   {"cpu", hierarchy.cpu},
                                   {"pids", hierarchy.pids},
                                   {"freezer", hierarchy.freezer},
                                   {"directory", hierarchy.directory}});
  }
  return json::Value(std::move(list));
}

Result<Groups> Groups::FromJson(const json::Value& value, const std::string& name) {
  Groups groups;
  const auto bad = [] { return Fail(errors::kMachineState, "a record names no valid cgroups"); };
  if (!value.is_array()) return bad();
  for (const json::Value& item : value.as_array()) {
    Hierarchy hierarchy;
    const json::Value* version = item.Find("version");
    const json::Value* directory = item.Find("directory");
    if (version == nullptr || !version->is_int() || directory == nullptr ||
        !directory->is_string()) {
      return bad();
    }
    hierarchy.version = static_cast<int>(version->as_int());
    hierarchy.directory = directory->as_string();
    const bool own = hierarchy.directory.starts_with("/") &&
                     hierarchy.directory.ends_with("/" + name) &&
                     hierarchy.directory.find("/../") == std::string::npos;
    if (!own || (hierarchy.version != 1 && hierarchy.version != 2)) return bad();
    const auto flag = [&item](const char* key) {
      const json::Value* found = item.Find(key);
      return found != nullptr && found->is_bool() && found->as_bool();
    };
    hierarchy.memory = flag("memory");
    hierarchy.cpu = flag("cpu");
    hierarchy.pids = flag("pids");
    hierarchy.freezer = flag("freezer");
    groups.hierarchies_.push_back(std::move(hierarchy));
  }
  return groups;
}

Result<void> Groups::Make() {
  for (const Hierarchy& hierarchy : hierarchies_) {
    Result<void> made = MakeDirectory(hierarchy.directory);
    if (made && hierarchy.limits()) made = MakeDirectory(hierarchy.directory + kCommands);
    if (made && hierarchy.limits() && hierarchy.version == 2) {
      made = MakeDirectory(hierarchy.directory + kAgent);
      std::string down = hierarchy.memory ? "+memory" : "";
      if (hierarchy.cpu) down += " +cpu";
      if (hierarchy.pids) down += " +pids";
      if (made) made = os::WriteSmallFile(hierarchy.directory + "/cgroup.subtree_control", down);
    }
    if (!made) {
      (void)Remove(milliseconds(1'000));
      return made;
    }
  }
  return {};
}

Result<void> Groups::Limit(const GroupLimits& limits) {
  for (const Hierarchy& hierarchy : hierarchies_) {
    const std::string& outer = hierarchy.directory;
    const std::string commands = outer + kCommands;
    if (hierarchy.memory) {
      CAISSON_TRY(LimitMemory(outer, hierarchy.version, limits.memory_bytes + kReservedMemory));
      CAISSON_TRY(LimitMemory(commands, hierarchy.version, limits.memory_bytes));
    }
    if (hierarchy.cpu) {
      CAISSON_TRY(LimitCpu(outer, hierarchy.version, limits.cpus + kReservedCpus));
      CAISSON_TRY(LimitCpu(commands, hierarchy.version, limits.cpus));
      if (hierarchy.version == 2) {
        (void)os::WriteSmallFile(outer + kAgent + "/cpu.weight", "1000");
      }
    }
    if (hierarchy.pids) {
      CAISSON_TRY(
          os::WriteSmallFile(outer + "/pids.max", std::to_string(limits.pids + kReservedPids)));
      CAISSON_TRY(os::WriteSmallFile(commands + "/pids.max", std::to_string(limits.pids)));
    }
  }
  return {};
}

const Groups::Hierarchy* Groups::Unified() const {
  for (const Hierarchy& hierarchy : hierarchies_) {
    if (hierarchy.version == 2) return &hierarchy;
  }
  return nullptr;
}

const Groups::Hierarchy* Groups::With(bool Hierarchy::* controller) const {
  for (const Hierarchy& hierarchy : hierarchies_) {
    if (hierarchy.*controller) return &hierarchy;
  }
  return nullptr;
}

Result<os::UniqueFd> Groups::OpenUnified() const {
  const Hierarchy* unified = Unified();
  if (unified == nullptr) return os::UniqueFd();
  return os::OpenFile(unified->directory + (unified->limits() ? kAgent : ""),
                      O_RDONLY | O_DIRECTORY);
}

// In version 1 a thread that moves itself does so without the lock that stops every fork of the
// host, and with it a grace period of RCU; moving processes, as version 2 has it, takes both.
Result<std::vector<os::UniqueFd>> Groups::OpenAgentTasks() const {
  std::vector<os::UniqueFd> files;
  for (const Hierarchy& hierarchy : hierarchies_) {
    if (hierarchy.version != 1) continue;
    CAISSON_ASSIGN(os::UniqueFd file, os::OpenFile(hierarchy.directory + "/tasks", O_WRONLY));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<os::UniqueFd>> Groups::OpenCommandTasks() const {
  std::vector<os::UniqueFd> files;
  for (const Hierarchy& hierarchy : hierarchies_) {
    if (!hierarchy.limits()) continue;
    const char* file = hierarchy.version == 1 ? "/tasks" : "/cgroup.procs";
    CAISSON_ASSIGN(os::UniqueFd opened,
                   os::OpenFile(hierarchy.directory + kCommands + file, O_WRONLY));
    files.push_back(std::move(opened));
  }
  return files;
}

bool Groups::HaveAgent(pid_t pid) const {
  const std::string line = "\n" + std::to_string(pid) + "\n";
  const auto lists = [&line](const std::string& directory) {
    const auto list = os::ReadSmallFile(directory + "/cgroup.procs");
    return list && ("\n" + *list).find(line) != std::string::npos;
  };
  return std::ranges::all_of(hierarchies_, [&lists](const Hierarchy& hierarchy) {
    const std::string& outer = hierarchy.directory;
    return lists(outer) || lists(outer + kAgent) || lists(RuntimesGroup(outer));
  });
}

Result<void> Groups::SetFrozen(bool frozen) const {
  const Hierarchy* unified = Unified();
  const Hierarchy* freezer = With(&Hierarchy::freezer);
  const std::string directory = unified != nullptr   ? unified->directory
                                : freezer != nullptr ? freezer->directory
                                                     : "";
  if (directory.empty()) return os::SyscallError("freeze: the machine has no cgroup", ENOENT);
  if (unified != nullptr) {
    CAISSON_TRY(os::WriteSmallFile(directory + "/cgroup.freeze", frozen ? "1" : "0"));
  } else {
    CAISSON_TRY(os::WriteSmallFile(directory + "/freezer.state", frozen ? "FROZEN" : "THAWED"));
  }
  const auto deadline = Clock::now() + milliseconds(10'000);
  for (int attempt = 0;; ++attempt) {
    if (unified != nullptr) {
      if (os::NumberIn(directory + "/cgroup.events", "frozen") == (frozen ? 1u : 0u)) return {};
    } else {
      CAISSON_ASSIGN(const std::string state, os::ReadSmallFile(directory + "/freezer.state"));
      if (state.starts_with(frozen ? "FROZEN" : "THAWED")) return {};
    }
    if (Clock::now() > deadline) {
      return os::SyscallError((frozen ? "freeze " : "thaw ") + directory, ETIMEDOUT);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(attempt < 50 ? 50 : 1'000));
  }
}

Result<void> Groups::Freeze() {
  auto frozen = SetFrozen(true);
  if (!frozen) (void)SetFrozen(false);
  return frozen;
}

Result<void> Groups::Thaw() { return SetFrozen(false); }

// Whether anything was there to kill. The agent goes first: who waits for a command shall be told
// that the machine has ended, not that the command was killed.
bool Groups::KillOnce() const {
  bool any = false;
  for (const Hierarchy& hierarchy : hierarchies_) {
    if (!hierarchy.limits()) continue;  // else its commands are apart
    any |= KillListed(RuntimesGroup(hierarchy.directory));
    any |= KillListed(hierarchy.directory + (hierarchy.version == 2 ? kAgent : ""));
  }
  for (const Hierarchy& hierarchy : hierarchies_) {
    const std::string& outer = hierarchy.directory;
    if (hierarchy.version == 2 && os::NumberIn(outer + "/cgroup.events", "populated") == 1) {
      any = true;
      if (os::WriteSmallFile(outer + "/cgroup.kill", "1")) continue;  // since 5.14
    }
    any |= KillListed(outer);
    any |= KillListed(outer + kCommands);
    any |= KillListed(outer + kAgent);
    any |= KillListed(RuntimesGroup(outer));
  }
  if (!any) return false;
  if (const Hierarchy* freezer = With(&Hierarchy::freezer)) {  // there the frozen cannot die
    (void)os::WriteSmallFile(freezer->directory + "/freezer.state", "THAWED");
  }
  return true;
}

Result<void> Groups::Kill(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (int attempt = 0; KillOnce(); ++attempt) {
    if (Clock::now() > deadline) {
      return os::SyscallError("end the processes of " + hierarchies_.front().directory, ETIMEDOUT);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(attempt < 50 ? 100 : 2'000));
  }
  return {};
}

Result<void> Groups::Remove(milliseconds patience) {
  CAISSON_TRY(Kill(patience));
  for (const Hierarchy& hierarchy : hierarchies_) {
    CAISSON_TRY(RemoveDirectory(hierarchy.directory + kCommands));
    CAISSON_TRY(RemoveDirectory(hierarchy.directory + kAgent));
    CAISSON_TRY(RemoveDirectory(RuntimesGroup(hierarchy.directory)));
    CAISSON_TRY(RemoveDirectory(hierarchy.directory));
  }
  return {};
}

std::uint64_t Groups::MemoryBytes() const {
  const Hierarchy* memory = With(&Hierarchy::memory);
  if (memory == nullptr) return 0;
  return os::NumberIn(memory->directory + kCommands +
                      (memory->version == 1 ? "/memory.usage_in_bytes" : "/memory.current"));
}

std::uint64_t Groups::CpuNanoseconds() const {
  // Version 2 counts time in every group, whether or not it has the controller.
  if (const Hierarchy* unified = Unified()) {
    return os::NumberIn(unified->directory + "/cpu.stat", "usage_usec") * 1000;
  }
  const Hierarchy* cpu = With(&Hierarchy::cpu);
  return cpu == nullptr ? 0 : os::NumberIn(cpu->directory + "/cpuacct.usage");
}

std::uint64_t Groups::Pids() const {
  const Hierarchy* pids = With(&Hierarchy::pids);
  return pids == nullptr ? 0 : os::NumberIn(pids->directory + kCommands + "/pids.current");
}

std::uint64_t Groups::OomKills() const {
  const Hierarchy* memory = With(&Hierarchy::memory);
  if (memory == nullptr) return 0;
  return os::NumberIn(memory->directory + kCommands +
                          (memory->version == 1 ? "/memory.oom_control" : "/memory.events"),
                      "oom_kill");
}

}  // namespace caisson::machine
