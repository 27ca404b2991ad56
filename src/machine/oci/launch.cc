// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "errors/oci.h"
#include "os/argument_pointers.h"
#include "os/process.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

constexpr int kFirstPassed = 3;
constexpr int kAbove = 64;
constexpr std::size_t kMostDescriptors = 16;
constexpr std::size_t kMostWords = 1500;  // of what a program says, in an error

// Everything that the child needs, made before it: it may not allocate.
struct Plan {
  char* const* arguments = nullptr;
  const Launch* launch = nullptr;
  const int* network = nullptr;  // null: none
  int messages = -1;
  int nothing = -1;
};

class Child {
 public:
  explicit Child(const Plan& plan) : plan_(plan), launch_(*plan.launch) {}

  [[noreturn]] void Run() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // half a container must not be finished by itself
    ResetSignals();
    for (const auto& tasks : {launch_.tasks, launch_.further}) {
      for (const os::UniqueFd& task : tasks) {
        Do("enter a cgroup", ::write(task.get(), "0", 1));
      }
    }
    SetUpMounts();
    ::setsid();
    ::umask(022);
    PlaceDescriptors();
    ::execve(plan_.arguments[0], plan_.arguments, environ);
    Give("execute the container runtime", errno);
  }

 private:
  void Say(const char* text) const { (void)!::write(plan_.messages, text, std::strlen(text)); }
  [[noreturn]] void Give(const char* step, int error) const {
    Say(step);
    Say(": ");
    Say(::strerrordesc_np(error));
    ::_exit(127);
  }
  void Do(const char* step, long result) const {
    if (result < 0) Give(step, errno);
  }

  static void ResetSignals() {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < SIGRTMAX; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  void SetUpMounts() const {
    Do("make mounts private", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
    Do("mount a place for the machine",
       ::mount("caisson", launch_.place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
               "mode=711,size=64k,nr_inodes=16"));
    for (const Attachment& attachment : launch_.attachments) {
      const char* path = attachment.path.c_str();
      Do("make a place for a mount of the machine",
         attachment.is_file ? ::mknod(path, S_IFREG | 0600, 0) : ::mkdir(path, 0700));
      Do("attach a mount of the machine",
         ::move_mount(attachment.mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH));
    }
    if (plan_.network == nullptr) return;
    Do("enter the machine's network", ::setns(*plan_.network, CLONE_NEWNET));
    // Of this namespace alone: procfs has other directories in another.
    Do("cover /proc/sys/net/core", ::mount("none", "/proc/sys/net/core", "tmpfs",
                                           MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  }

  void PlaceDescriptors() const {
    std::array<int, kMostDescriptors> high{};
    const std::size_t count = launch_.descriptors.size();
    for (std::size_t i = 0; i < count; ++i) {
      high[i] = ::fcntl(launch_.descriptors[i], F_DUPFD_CLOEXEC, kAbove);
      Do("move a descriptor", high[i]);
    }
    const int messages = ::fcntl(plan_.messages, F_DUPFD_CLOEXEC, kAbove);
    Do("place the standard descriptors", ::dup2(plan_.nothing, STDIN_FILENO));
    Do("place the standard descriptors", ::dup2(messages, STDOUT_FILENO));
    Do("place the standard descriptors", ::dup2(messages, STDERR_FILENO));
    for (std::size_t i = 0; i < count; ++i) {
      Do("place a descriptor", ::dup2(high[i], kFirstPassed + static_cast<int>(i)));
    }
    Do("close the other descriptors",
       ::syscall(SYS_close_range, kFirstPassed + static_cast<int>(count), ~0U, 0));
  }

  const Plan& plan_;
  const Launch& launch_;
};

std::string LastWords(const std::string& path) {
  std::string text = os::ReadSmallFile(path).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  if (text.size() > kMostWords) text.erase(0, text.size() - kMostWords);
  return text.empty() ? "it said nothing" : text;
}

}  // namespace

Result<std::string> FindPlace(const std::vector<std::string>& needed) {
  for (const char* place : {"/dev/shm", "/mnt", "/srv", "/media", "/opt"}) {
    struct stat info{};
    if (::lstat(place, &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    const std::string below = std::string(place) + "/";
    if (std::ranges::none_of(needed, [&below](const std::string& path) {
          return (path + "/").starts_with(below);
        })) {
      return std::string(place);
    }
  }
  return Fail(errors::kOciUnavailable,
              "none of /dev/shm, /mnt, /srv, /media and /opt is a directory that holds nothing of "
              "what containers are made from: make /mnt");
}

Result<void> Run(const Launch& launch) {
  if (launch.descriptors.size() > kMostDescriptors) {
    return os::SyscallError("pass so many descriptors", EMFILE);
  }
  std::vector<std::string> words = launch.arguments;
  const std::vector<char*> arguments = os::ArgumentPointers(words);
  CAISSON_ASSIGN(const os::UniqueFd nothing, os::OpenFile("/dev/null", O_RDWR));
  const os::UniqueFd messages(
      ::open(launch.messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!messages.valid()) return os::SyscallError("make " + launch.messages);
  os::UniqueFd network;
  if (!launch.network.empty()) {
    CAISSON_ASSIGN(network, os::OpenFile(launch.network, O_RDONLY));
  }
  const int network_fd = network.get();
  const Plan plan{.arguments = arguments.data(),
                  .launch = &launch,
                  .network = network.valid() ? &network_fd : nullptr,
                  .messages = messages.get(),
                  .nothing = nothing.get()};
  CAISSON_ASSIGN(os::CloneResult clone, os::CloneWithNamespaces(CLONE_NEWNS, launch.group));
  if (clone.pid == 0) Child(plan).Run();
  os::ChildProcess program(clone.pid, std::move(clone.pidfd));
  const auto end = program.Wait(launch.patience);
  if (end && *end == os::ExitStatus{}) return {};
  if (!end) program.Kill();
  return Fail(errors::kOciFailed,
              launch.arguments.front() + " " +
                  (end ? os::ToText(*end) : std::string("did not end in time")) + ": " +
                  LastWords(launch.messages));
}

}  // namespace caisson::machine::oci
