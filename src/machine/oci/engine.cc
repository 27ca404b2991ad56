// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/engine.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/digest/sha256.h"
#include "errors/oci.h"
#include "machine/boot_child.h"
#include "os/cgroup.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr milliseconds kPatience{30'000};
constexpr milliseconds kPatienceOfVersion{5'000};
constexpr std::size_t kMostWords = 800;  // of what an engine says, in an error
constexpr const char* kRepository = "caisson-container-init";
// For the first program and what the engine adds; the machine has groups of its own.
constexpr const char* kOwnMemory = "134217728";

// A command that makes a container goes on when this process is killed: Podman that is killed
// half-way leaves half a container, of which it knows nothing. A whole one ends by itself, as
// nobody talks to it.
constexpr const char* kToTheEnd = R"("$@" & end=$!; trap 'kill $end' TERM; wait $end)";

// Requests a stop after a while, unless it is destroyed before.
class Alarm {
 public:
  explicit Alarm(milliseconds patience)
      : thread_([this, patience](const std::stop_token& over) {
          std::unique_lock lock(mutex_);
          rang_ = !wake_.wait_for(lock, over, patience, [&over] { return over.stop_requested(); });
          if (rang_) source_.request_stop();
        }) {}
  std::stop_token token() const { return source_.get_token(); }
  bool rang() const { return source_.stop_requested(); }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool rang_ = false;
  std::stop_source source_;
  std::jthread thread_;  // last
};

std::string Shortened(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  if (text.size() > kMostWords) text.erase(0, text.size() - kMostWords);
  return text.empty() ? "it said nothing" : text;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

bool SaysThereIsNone(const std::string& words) {
  return words.find("o such container") != std::string::npos ||
         words.find("no container with") != std::string::npos;
}

Result<std::string> ReadProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file && !bytes.empty()) return bytes;
  return Fail(errors::kOciUnavailable, "the program " + path + " cannot be read; install it again");
}

Result<void> WriteImage(const std::string& path, const std::string& tar) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << tar << std::flush;
  if (file) return {};
  return Fail(errors::kOciState, "write " + path + ": " + os::ErrnoText(errno));
}

// What this process has, since some defaults are more than a host in a container may give; and no
// more than Podman leaves itself.
std::string Ulimit(const char* name, __rlimit_resource resource, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) limit = {most, most};
  return std::string("--ulimit=") + name + "=" + std::to_string(std::min(limit.rlim_cur, most)) +
         ":" + std::to_string(std::min(limit.rlim_max, most));
}

}  // namespace

Words Engine::Command() const {
  Words words = {runtime_.program};
  // crun, which may be the default, refuses hosts with both versions of cgroups.
  const std::string runc = os::FindProgram("runc");
  if (runtime_.kind == RuntimeKind::kPodman && os::FindControllers()[0].version == 1 &&
      runc.starts_with('/')) {
    words.push_back("--runtime=" + runc);
  }
  return words;
}

Result<std::string> Engine::Run(Words words, milliseconds patience, bool to_the_end) const {
  const std::string shown = runtime_.program + " " + words.front();
  Words all;
  if (to_the_end) all = {"/bin/sh", "-c", kToTheEnd, "sh"};
  std::ranges::move(Command(), std::back_inserter(all));
  std::ranges::move(words, std::back_inserter(all));
  std::string silent;
  {
    const Alarm alarm(patience);
    auto end = os::RunProgram({.arguments = all}, alarm.token());
    if (end && end->succeeded()) return std::move(end->output);
    if (!end) return Fail(errors::kOciFailed, shown + " cannot be run: " + end.error().message);
    if (alarm.rang()) {
      return Fail(errors::kOciEngineSilent, shown + " has not ended within " +
                                                std::to_string(patience.count() / 1000) +
                                                " s; see whether its service hangs");
    }
    silent = Shortened(end->messages);
  }
  // Podman has no service.
  if (runtime_.kind == RuntimeKind::kDocker) {
    const Alarm alarm(kPatienceOfVersion);
    const auto end = os::RunProgram(
        {.arguments = {runtime_.program, "version", "--format", "{{.Server.Version}}"}},
        alarm.token());
    if (!end || !end->succeeded()) {
      return Fail(errors::kOciEngineSilent,
                  shown + ": Docker's service does not answer; start it: " + silent);
    }
  }
  return Fail(errors::kOciFailed, shown + ": " + silent);
}

Result<Engine> Engine::Open(Runtime runtime, const std::string& init, const std::string& place,
                            const std::string& state) {
  if (::geteuid() != 0) {
    return Fail(errors::kOciUnavailable, "machines are made by root; run this as root");
  }
  if (state.find_first_of(",\n\"") != std::string::npos) {
    return Fail(errors::kOciUnavailable,
                "the state directory " + state + " has a character that a mount's option cannot");
  }
  Engine engine(std::move(runtime), state);
  CAISSON_TRY(engine.ImportImage(init, place));
  return engine;
}

Result<void> Engine::ImportImage(const std::string& init, const std::string& place) {
  CAISSON_ASSIGN(const std::string program, ReadProgram(init));
  const std::string tar = InitImage(program);
  const std::string sum = digest::Sha256Hex(tar);
  const std::string name = std::string(kRepository) + ":" + sum.substr(0, 32);
  const auto find = [&] {
    return Run({"image", "inspect", "--format", "{{.Id}} {{index .RootFS.Layers 0}}", name},
               kPatience);
  };
  auto found = find();
  if (!found && found.error().code == errors::kOciEngineSilent) return Fail(found.error());
  if (!found) {
    const std::string file = place + "/container-init.tar";
    CAISSON_TRY(WriteImage(file, tar));
    auto imported = Run({"import", file, name}, kPatience);
    (void)::unlink(file.c_str());
    if (!imported) return Fail(std::move(imported).error());
    CAISSON_ASSIGN(found, find());
  }
  const std::string line = FirstLine(*found);
  const std::size_t blank = line.find(' ');
  // A layer is named by the digest of its content.
  if (blank == std::string::npos || line.substr(blank + 1) != "sha256:" + sum) {
    return Fail(errors::kOciUnavailable,
                runtime_.program + " has another image under the name " + name +
                    " than was imported; remove it (image rm) and start again");
  }
  image_ = line.substr(0, blank);
  return {};
}

Words Engine::StartCommand(const EngineContainer& container) const {
  const bool podman = runtime_.kind == RuntimeKind::kPodman;
  Words words = {
      "run", "--detach", "--rm", "--name=" + container.name,
      std::string("--label=") + kMachineLabel + "=" + container.name,
      std::string("--label=") + kStateLabel + "=" + state_, "--pull=never", "--log-driver=none",
      "--no-healthcheck", "--read-only", "--user=0:0", "--workdir=/",
      // The machine's own is entered by the first program, which is what it needs the capability
      // for, and the machine's namespaces are made in there, which needs a whole procfs in sight.
      "--network=none", "--cap-drop=ALL", "--cap-add=SYS_ADMIN",
      podman ? "--security-opt=unmask=ALL" : "--security-opt=systempaths=unconfined",
      "--security-opt=no-new-privileges", "--security-opt=seccomp=" + container.seccomp_file,
      // Profiles of engines forbid mounts; the machine has walls of its own in their place.
      "--security-opt=apparmor=unconfined", "--security-opt=label=disable", "--ipc=private",
      "--userns=host", "--cgroupns=host", std::string("--memory=") + kOwnMemory,
      std::string("--memory-swap=") + kOwnMemory, "--pids-limit=64",
      "--mount=type=bind,source=" + container.handover + ",target=" + boot::kHandoverPlace +
          (podman ? ",ro" : ",readonly")};
  if (podman) {
    words.insert(words.end(), {"--read-only-tmpfs=false", "--systemd=false", "--sdnotify=ignore",
                               "--no-hosts", Ulimit("nofile", RLIMIT_NOFILE, 1'048'576),
                               Ulimit("nproc", RLIMIT_NPROC, 32'768), "--ulimit=core=0:0"});
  }
  words.push_back(image_);
  words.emplace_back("/caisson-container-init");
  return words;
}

Result<void> Engine::Start(const EngineContainer& container) const {
  CAISSON_TRY(Run(StartCommand(container), kPatience, true));
  return {};
}

Result<pid_t> Engine::FirstProcess(const std::string& name) const {
  CAISSON_ASSIGN(const std::string text,
                 Run({"container", "inspect", "--format", "{{.State.Pid}}", name}, kPatience));
  pid_t pid = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (parsed.ec == std::errc() && pid > 1) return pid;
  return Fail(errors::kOciFailed, runtime_.program + " names no process of the container " + name);
}

Result<void> Engine::Remove(const std::string& name) const {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    auto removed = Run({"rm", "--force", "--volumes", name}, kPatience);
    if (removed || SaysThereIsNone(removed.error().message)) return {};
    // It is being removed by itself, as its machine has ended.
    if (removed.error().code == errors::kOciEngineSilent || Clock::now() > deadline) {
      return Fail(std::move(removed).error());
    }
    std::this_thread::sleep_for(milliseconds(50));
  }
}

Result<Words> Engine::List() const {
  CAISSON_ASSIGN(const std::string text,
                 Run({"ps", "--all", std::string("--filter=label=") + kStateLabel + "=" + state_,
                      "--format={{.Names}}"},
                     kPatience));
  Words names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string name = text.substr(at, end - at);
    if (IsContainerName(name)) names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

}  // namespace caisson::machine::oci
