// SPDX-License-Identifier: Apache-2.0
#include "machine/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPatience{2'000};

// How long a name with these characters may be is what a cgroup's directory may have.
std::string Nonce() { return fmt::format("{:08x}", std::random_device{}()); }

std::unexpected<Status> StateError(const std::string& what) {
  return Fail(errors::kMachineState, what + ": " + os::ErrnoText(errno));
}

Result<void> MakePrivateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return StateError("mkdir " + path);
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return StateError("stat " + path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return Fail(errors::kMachineState,
                path + " must be a directory of this user that nobody else can write");
  }
  return {};
}

Result<os::UniqueFd> LockState(const std::string& state) {
  const std::string path = state + "/lock";
  os::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return StateError("open " + path);
  // A program that a killed helper was about to start has it for a moment more.
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(errors::kMachineState, "another helper works in " + state);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

Result<std::string> InstanceOf(const std::string& state) {
  const std::string path = state + "/instance";
  if (auto text = os::ReadSmallFile(path); text && text->size() == 8) return *std::move(text);
  std::string instance = Nonce();
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid() || ::write(file.get(), instance.data(), instance.size()) != 8 ||
      ::fsync(file.get()) != 0) {
    return StateError("make " + path);
  }
  return instance;
}

}  // namespace

Result<StateDirectory> StateDirectory::Open(const std::string& directory) {
  StateDirectory state;
  CAISSON_TRY(MakePrivateDirectory(directory));
  char* real = ::realpath(directory.c_str(), nullptr);
  if (real == nullptr) return StateError("find " + directory);
  state.path_ = real;
  std::free(real);  // NOLINT(cppcoreguidelines-no-malloc): realpath's
  CAISSON_ASSIGN(state.lock_, LockState(state.path_));
  for (const char* part : {"/machines", "/snapshots", "/templates", "/scratch", "/set-aside"}) {
    CAISSON_TRY(MakePrivateDirectory(state.path_ + part));
  }
  CAISSON_ASSIGN(state.instance_, InstanceOf(state.path_));
  CAISSON_ASSIGN(state.boot_, os::ReadSmallFile("/proc/sys/kernel/random/boot_id"));
  if (state.boot_.ends_with('\n')) state.boot_.pop_back();
  return state;
}

std::string StateDirectory::NewSlot(std::uint32_t index) const {
  return fmt::format("caisson-{}-{}-{}", instance_, index, Nonce());
}

Result<std::string> StateDirectory::MakeMachine(const std::string& slot) const {
  std::string directory = machines() + "/" + slot;
  if (::mkdir(directory.c_str(), 0700) == 0) return directory;
  if (errno == ENOSPC) return Fail(errors::kMachineFull, "the host's disk is full");
  return StateError("mkdir " + directory);
}

Result<std::vector<std::string>> StateDirectory::Slots() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(machines(), error)) {
    names.push_back(entry.path().filename());
  }
  if (error) return Fail(errors::kMachineState, "list " + machines() + ": " + error.message());
  return names;
}

Result<void> StateDirectory::SetAside(const std::string& slot, const std::string& disk) const {
  const std::string directory = machines() + "/" + slot;
  std::error_code error;
  if (!fs::exists(directory + "/" + disk, error)) {
    fs::remove_all(directory, error);
  } else {
    fs::rename(directory, path_ + "/set-aside/" + slot, error);
  }
  if (error) return Fail(errors::kMachineState, "set " + directory + " aside: " + error.message());
  return {};
}

std::uint64_t StartOf(pid_t pid) {
  const auto text = os::ReadSmallFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;  // counted as in proc(5)
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

os::UniqueFd ProcessOf(const Record& record, const std::string& boot) {
  if (record.boot != boot || record.agent <= 0) return {};
  os::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, record.agent, 0)));
  if (StartOf(record.agent) != record.agent_start) return {};
  return process;
}

bool HasEnded(int pidfd) {
  pollfd event{pidfd, POLLIN, 0};
  return ::poll(&event, 1, 0) > 0;
}

}  // namespace caisson::machine
