// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/container.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <utility>

#include "errors/oci.h"
#include "json/writer.h"
#include "os/process.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

constexpr std::uint64_t kRunscThreads = 256;               // gVisor's own, beside the guest's
constexpr std::string_view kHierarchy = "/sys/fs/cgroup";  // where runc looks for version 2

// Where runc is to make the group, so that limits that others have put on us keep their force.
std::string CgroupPath(const std::string& name) {
  const os::ControllerPlace place = os::FindControllers()[0];
  // In version 1 runc takes a relative path to be below our own group, in each hierarchy.
  if (place.version != 2 || !place.parent.starts_with(kHierarchy)) return name;
  return place.parent.substr(kHierarchy.size()) + "/" + name;
}

Result<void> WriteText(const std::string& path, const json::Value& value) {
  CAISSON_ASSIGN(const std::string text, json::Write(value));
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.valid() &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return Fail(errors::kOciState, "write " + path + ": " + os::ErrnoText(errno));
}

using Words = std::vector<std::string>;

Words BundleStart(const Runtime& runtime, const std::string& root, const std::string& bundle,
                  const std::string& name, bool passes) {
  if (runtime.kind == RuntimeKind::kRunsc) {
    return {runtime.program,      "--root=" + root,
            "--network=none",     "--ignore-cgroups",
            "--oci-seccomp",      "run",
            "--bundle=" + bundle, name};
  }
  Words words = {runtime.program, "--root", root,         "run",          "--detach",
                 "--bundle",      bundle,   "--pid-file", bundle + "/pid"};
  if (passes) words.insert(words.end(), {"--preserve-fds", "1"});
  words.push_back(name);
  return words;
}

Words Clear(const Runtime& runtime, const std::string& root, const std::string& name) {
  if (!TakesBundles(runtime.kind)) return {runtime.program, "rm", "--force", name};
  return {runtime.program, "--root", root, "delete", "--force", name};
}

Words Lines(const std::string& text) {
  Words lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool Succeeds(Words words) {
  const auto end = os::RunProgram({.arguments = std::move(words)});
  return end && end->succeeded();
}

// What is left of it must be found by whatever made it.
std::string ProgramOf(const std::string& kind, const Runtime& runtime) {
  return kind == NameOf(runtime.kind) ? runtime.program : os::FindProgram(kind);
}

}  // namespace

Result<void> Container::WriteBundle(const ContainerStart& start, const std::string& cgroup) {
  if (::mkdir(bundle_.c_str(), 0700) != 0) {
    return Fail(errors::kOciState, "make " + bundle_ + ": " + os::ErrnoText(errno));
  }
  if (!TakesBundles(runtime_->kind)) {
    return WriteText(bundle_ + "/seccomp.json", SeccompProfile(start.policy.syscalls));
  }
  ContainerPolicy policy = start.policy;
  policy.cgroup = cgroup;
  return WriteText(bundle_ + "/config.json", RuntimeConfig(policy));
}

Result<Container> Container::Start(State& state, const ContainerStart& start) {
  Container container;
  container.runtime_ = start.runtime;
  container.name_ = state.NextName();
  container.bundle_ = state.folder() + "/" + container.name_;
  container.begin_ = std::chrono::system_clock::now();
  CAISSON_TRY(container.WriteBundle(start, CgroupPath(container.name_)));
  const Runtime& runtime = *start.runtime;
  KeeperPlan plan;
  plan.descriptors = start.descriptors;
  plan.clear = Clear(runtime, state.runtime_root(), container.name_);
  if (TakesBundles(runtime.kind)) {
    plan.start = BundleStart(runtime, state.runtime_root(), container.bundle_, container.name_,
                             start.descriptors[3] >= 0);
  } else {
    plan.start = EngineCommand(runtime, start.policy,
                               {.name = container.name_,
                                .owner = state.owner(),
                                .image = start.image,
                                .seccomp_file = container.bundle_ + "/seccomp.json"});
  }
  if (runtime.kind == RuntimeKind::kRunc) {
    plan.pid_file = container.bundle_ + "/pid";
    container.cgroup_ = os::Cgroup::Adopt(container.name_);
  }
  if (runtime.kind == RuntimeKind::kRunsc) {
    // All of gVisor's processes are counted, which its own groups do not do everywhere.
    container.cgroup_ =
        os::Cgroup::Make(container.name_, {.memory_bytes = start.policy.memory_bytes,
                                           .cpus = start.policy.cpus,
                                           .pids = start.policy.pids + kRunscThreads});
    if (!container.cgroup_.refused().empty()) {
      return Fail(errors::kOciUnavailable,
                  "no cgroup for runsc: " + container.cgroup_.refused()[0].reason);
    }
    for (const std::string& directory : container.cgroup_.directories()) {
      plan.groups.push_back(directory + "/cgroup.procs");
    }
  }
  CAISSON_ASSIGN(container.keeper_, Keeper::Start(plan));
  return container;
}

Container::~Container() {
  keeper_ = Keeper();  // waits
  if (bundle_.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(bundle_, error);
}

bool Container::HandleEvent() {
  const auto event = keeper_.Receive();
  if (event && event->kind == KeeperEventKind::kStarted) {
    pid_ = event->pid;
    return true;
  }
  End end;
  // Without a pid file the runtime's program lives as long as the container, and ends as it does.
  end.started = event && (pid_ != 0 || runtime_->kind != RuntimeKind::kRunc);
  end.cpu = std::chrono::nanoseconds(event ? event->cpu_ns : 0);
  const int status = event ? event->status : SIGKILL;
  if (WIFSIGNALED(status)) end.status.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.status.code = WEXITSTATUS(status);
  end_ = end;
  return false;
}

std::optional<std::chrono::nanoseconds> Container::CpuNow() const {
  timespec time{};
  clockid_t clock = 0;
  if (pid_ == 0 || end_ || ::clock_getcpuclockid(pid_, &clock) != 0 ||
      ::clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::uint64_t Container::PeakReservedMemory() const {
  const bool shows = pid_ != 0 && !end_;
  return std::max(PeakMemory(), shows ? os::PeakDataBytes(pid_) : 0);
}

bool Container::RanOutOfMemory() const {
  if (TakesBundles(runtime_->kind)) return cgroup_.OomKills() > 0;
  if (runtime_->kind != RuntimeKind::kDocker) return false;
  // Removed containers have left their events.
  const auto seconds = [](std::chrono::system_clock::time_point time) {
    return std::to_string(
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  const auto now = std::chrono::system_clock::now() + std::chrono::seconds(1);
  const auto end =
      os::RunProgram({.arguments = {runtime_->program, "events", "--since=" + seconds(begin_),
                                    "--until=" + seconds(now), "--filter=container=" + name_,
                                    "--filter=event=oom", "--format={{.Action}}"}});
  return end && end->succeeded() && end->output.starts_with("oom");
}

std::vector<std::string> ReapOrphans(const State& state, const Runtime& runtime) {
  std::vector<std::string> removed;
  for (State::Orphan& orphan : state.FindOrphans()) {
    const auto kind = FindRuntimeKind(orphan.kind);
    // Without a kind it was killed while it removed its folder.
    if (orphan.containers.empty() && (!kind || TakesBundles(*kind))) {
      State::Forget(orphan);
      continue;
    }
    const std::string program = kind ? ProgramOf(orphan.kind, runtime) : "";
    if (program.empty()) continue;
    const Runtime maker{.kind = *kind, .program = program, .version = {}};
    if (!TakesBundles(*kind)) {
      const auto found =
          os::RunProgram({.arguments = {program, "ps", "--all", "--format={{.Names}}",
                                        "--filter=label=caisson.owner=" + orphan.owner}});
      if (!found || !found->succeeded()) continue;
      orphan.containers = Lines(found->output);
    }
    bool all = true;
    for (const std::string& name : orphan.containers) {
      if (!IsContainerName(name)) continue;
      const bool gone = Succeeds(Clear(maker, orphan.folder + "/runtime", name));
      if (gone) removed.push_back(name);
      all = all && gone;
    }
    if (all) State::Forget(orphan);
  }
  return removed;
}

}  // namespace caisson::machine::oci
