// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "errors/oci.h"
#include "machine/oci/names.h"
#include "os/cgroup.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

constexpr std::string_view kOwnerStart = "caisson.";

std::unexpected<Status> StateError(const std::string& what, const std::string& path) {
  return Fail(errors::kOciState, what + " " + path + ": " + os::ErrnoText(errno) +
                                     ". Set CAISSON_OCI_STATE to a folder of this user.");
}

Result<void> MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return StateError("make", path);
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return StateError("look at", path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0) {
    errno = EPERM;
    return StateError("trust (it must be a folder that only this user can write)", path);
  }
  return {};
}

Result<std::string> RandomText() {
  unsigned char bytes[6];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return os::SyscallError("getrandom");
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) text.append({kHex[byte >> 4], kHex[byte & 15]});
  return text;
}

os::UniqueFd TryLock(const std::string& path) {
  os::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Reset();
  return lock;
}

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

// By the runtime's own state: runc has a folder for each, runsc a file <name>_sandbox:<name>.state
// (and others, of which some stay).
std::vector<std::string> ContainersIn(const std::string& runtime_root) {
  std::vector<std::string> containers;
  for (const std::string& entry : NamesIn(runtime_root)) {
    std::string name = entry;
    std::error_code error;
    const std::size_t mark = entry.find("_sandbox:");
    if (mark != std::string::npos && entry.ends_with(".state")) {
      name = entry.substr(0, mark);
    } else if (!std::filesystem::is_directory(std::filesystem::path(runtime_root) / entry, error)) {
      continue;
    }
    if (IsContainerName(name)) containers.push_back(std::move(name));
  }
  return containers;
}

}  // namespace

std::string State::DefaultDirectory() {
  if (const char* named = std::getenv("CAISSON_OCI_STATE"); named != nullptr && *named != '\0') {
    return named;
  }
  if (::geteuid() == 0) return "/run/caisson/oci";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr || *runtime == '\0' ? "" : std::string(runtime) + "/caisson/oci";
}

Result<State> State::Open(const std::string& directory, std::string_view kind) {
  if (!directory.starts_with('/')) {
    return Fail(errors::kOciState,
                "there is no folder for the state of containers; set CAISSON_OCI_STATE to an "
                "absolute path");
  }
  State state;
  state.directory_ = directory;
  const std::size_t slash = directory.rfind('/');
  if (slash > 0) (void)::mkdir(directory.substr(0, slash).c_str(), 0755);
  CAISSON_TRY(MakeFolder(directory));
  CAISSON_ASSIGN(const std::string random, RandomText());
  state.owner_ = os::Cgroup::NamePrefix() + random;
  state.folder_ = directory + "/" + state.owner_;
  // Made under a name that no reaper looks at, and locked before it gets its own.
  const std::string draft = directory + "/.new-" + random;
  CAISSON_TRY(MakeFolder(draft));
  CAISSON_TRY(MakeFolder(draft + "/runtime"));
  const os::UniqueFd kind_file(
      ::open((draft + "/kind").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!kind_file.valid() ||
      ::write(kind_file.get(), kind.data(), kind.size()) != static_cast<ssize_t>(kind.size())) {
    return StateError("write to", draft);
  }
  state.lock_ = TryLock(draft + "/lock");
  if (!state.lock_.valid()) return StateError("lock", draft);
  if (::rename(draft.c_str(), state.folder_.c_str()) != 0) return StateError("rename", draft);
  return state;
}

State::~State() {
  if (!lock_.valid() || !ContainersIn(runtime_root()).empty()) return;
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string State::NextName() {
  static std::atomic<std::uint64_t> counter{0};
  return owner_ + "-" + std::to_string(counter++);
}

std::vector<State::Orphan> State::FindOrphans() const {
  std::vector<Orphan> orphans;
  for (const std::string& name : NamesIn(directory_)) {
    if (name == owner_ || !name.starts_with(kOwnerStart)) continue;
    const std::string folder = directory_ + "/" + name;
    os::UniqueFd lock = TryLock(folder + "/lock");
    if (!lock.valid()) continue;
    orphans.push_back({name, os::ReadSmallFile(folder + "/kind").value_or(""), folder,
                       ContainersIn(folder + "/runtime"), std::move(lock)});
  }
  return orphans;
}

void State::Forget(const Orphan& orphan) {
  std::error_code error;
  std::filesystem::remove_all(orphan.folder, error);
}

}  // namespace caisson::machine::oci
