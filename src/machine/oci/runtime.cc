// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/runtime.h"

#include <fmt/format.h>
#include <unistd.h>

#include "errors/oci.h"
#include "json/reader.h"
#include "os/cgroup.h"
#include "os/run_program.h"

namespace caisson::machine::oci {
namespace {

std::unexpected<Status> Unavailable(const std::string& message) {
  return Fail(errors::kOciUnavailable, message);
}

// Of a program that succeeded.
Result<std::string> OutputOf(std::vector<std::string> words) {
  const std::string shown = words.at(0);
  auto end = os::RunProgram({.arguments = std::move(words)});
  if (!end) return Unavailable(shown + " cannot be run: " + end.error().message);
  if (!end->succeeded()) {
    Status status{
        .code = errors::kOciUnavailable,
        .message = shown + " " + os::ToText(end->status) + ": " + end->messages.substr(0, 500)};
    return std::unexpected(std::move(status));
  }
  return std::move(end->output);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string LineWith(const std::string& text, std::string_view start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? "" : FirstLine(text.substr(at));
}

Result<void> NeedControllers(std::string_view name) {
  const auto places = os::FindControllers();
  for (const os::ControllerPlace& place : places) {
    if (place.version == places[0].version && place.version != 0) continue;
    return Unavailable(
        std::string(name) + " cannot limit " + os::ControllerName(place.controller) + ": " +
        (place.version == 0 ? place.reason : "controllers are of versions 1 and 2, mixed"));
  }
  return {};
}

// Without root, both make a container in which this user is root, and limit nothing.
Result<void> NeedRoot(std::string_view name) {
  if (::geteuid() == 0) return {};
  return Unavailable(
      std::string(name) +
      " needs root here; run this as root, or use the runtime native, which does not");
}

bool IsTrue(const json::Value& info, std::string_view key) {
  const json::Value* value = info.Find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

bool HasText(const json::Value* list, std::string_view text) {
  if (list == nullptr || !list->is_array()) return false;
  for (const json::Value& item : list->as_array()) {
    if (item.is_string() && item.as_string().find(text) != std::string::npos) return true;
  }
  return false;
}

void FindDockerGaps(const json::Value& info, std::vector<std::string>& gaps) {
  constexpr std::pair<const char*, const char*> kNeeded[] = {
      {"MemoryLimit", "limits on memory"},
      {"SwapLimit", "limits on swap"},
      {"PidsLimit", "limits on processes"},
      {"CpuCfsQuota", "limits on processors"}};
  for (const auto& [key, what] : kNeeded) {
    if (!IsTrue(info, key)) gaps.emplace_back(what);
  }
  if (!HasText(info.Find("SecurityOptions"), "name=seccomp")) gaps.emplace_back("seccomp");
}

void FindPodmanGaps(const json::Value& info, std::vector<std::string>& gaps) {
  const json::Value* host = info.Find("host");
  const json::Value none;
  const json::Value& of_host = host == nullptr ? none : *host;
  for (const char* controller : {"memory", "cpu", "pids"}) {
    if (!HasText(of_host.Find("cgroupControllers"), controller)) {
      gaps.push_back(std::string("the cgroup controller ") + controller);
    }
  }
  const json::Value* security = of_host.Find("security");
  if (security == nullptr || !IsTrue(*security, "seccompEnabled")) gaps.emplace_back("seccomp");
}

Result<Runtime> ProbeBundleRuntime(Runtime runtime) {
  const std::string name(NameOf(runtime.kind));
  CAISSON_TRY(NeedRoot(name));
  CAISSON_TRY(NeedControllers(name));
  CAISSON_ASSIGN(const std::string version, OutputOf({runtime.program, "--version"}));
  runtime.version = FirstLine(version);
  if (runtime.kind == RuntimeKind::kRunc && LineWith(version, "libseccomp:").empty()) {
    return Unavailable(runtime.program +
                       " was built without seccomp; install Debian's package runc");
  }
  return runtime;
}

Result<Runtime> ProbeEngine(Runtime runtime) {
  CAISSON_ASSIGN(const std::string version, OutputOf({runtime.program, "--version"}));
  runtime.version = FirstLine(version);
  CAISSON_ASSIGN(const std::string text,
                 OutputOf({runtime.program, "info", "--format", "{{json .}}"}));
  auto info = json::Read(text);
  if (!info || !info->is_object()) {
    return Unavailable(runtime.program + " info gives no JSON; is its service running?");
  }
  if (const json::Value* errors = info->Find("ServerErrors");
      errors != nullptr && errors->is_array() && !errors->as_array().empty()) {
    return Unavailable(runtime.program + " has no service to talk to; start it");
  }
  std::string missing;
  for (const std::string& gap : FindGaps(runtime.kind, *info)) {
    missing += (missing.empty() ? "" : ", ") + gap;
  }
  if (missing.empty()) return runtime;
  return Unavailable(runtime.program + " enforces no " + missing +
                     " on this host; nothing runs without");
}

std::string TmpOptions(RuntimeKind kind, const ContainerPolicy& policy) {
  std::string options =
      fmt::format("/tmp:rw,noexec,nosuid,nodev,mode=1777,size={}", policy.tmp_bytes);
  // Podman does not know the option; there the limit on memory bounds the number of files.
  if (kind == RuntimeKind::kDocker) options += fmt::format(",nr_inodes={}", policy.tmp_inodes);
  return options;
}

std::string Decimal(double number) { return fmt::format("{:.3f}", number); }

}  // namespace

std::string_view NameOf(RuntimeKind kind) {
  constexpr std::string_view kNames[] = {"runc", "runsc", "docker", "podman"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<RuntimeKind> FindRuntimeKind(std::string_view name) {
  for (const RuntimeKind kind : kRuntimeKinds) {
    if (NameOf(kind) == name) return kind;
  }
  return std::nullopt;
}

std::vector<std::string> FindGaps(RuntimeKind kind, const json::Value& info) {
  std::vector<std::string> gaps;
  if (kind == RuntimeKind::kDocker) FindDockerGaps(info, gaps);
  if (kind == RuntimeKind::kPodman) FindPodmanGaps(info, gaps);
  return gaps;
}

Result<Runtime> ProbeRuntime(RuntimeKind kind, const std::string& program) {
  const std::string name(NameOf(kind));
  Runtime runtime{.kind = kind, .program = os::FindProgram(program.empty() ? name : program)};
  if (!runtime.program.starts_with('/')) {
    return Unavailable((program.empty() ? name + " is not in PATH" : program + " is no program") +
                       "; install it (Debian's package is " +
                       (kind == RuntimeKind::kDocker ? "docker.io" : name) + ")");
  }
  if (TakesBundles(kind)) return ProbeBundleRuntime(std::move(runtime));
  return ProbeEngine(std::move(runtime));
}

Result<std::string> FindEngineImage(const Runtime& runtime, const ImageReference& image) {
  auto id = OutputOf({runtime.program, "image", "inspect", "--format", "{{.Id}}", image.ToText()});
  if (!id) {
    return Unavailable(
        "the image " + image.ToText() + " is not in " + std::string(NameOf(runtime.kind)) +
        ", and none is fetched; `caisson images build NAME --oci FILE` makes one to load");
  }
  std::string line = FirstLine(*id);
  if (line.find_first_not_of("0123456789abcdefABCDEFshm:") != std::string::npos || line.empty()) {
    return Unavailable(runtime.program + " gives no id for the image " + image.ToText());
  }
  return line;
}

std::vector<std::string> EngineCommand(const Runtime& runtime, const ContainerPolicy& policy,
                                       const EngineRun& run) {
  const std::string memory = std::to_string(policy.memory_bytes);
  const std::string user = std::to_string(kUser);
  std::vector<std::string> words = {
      runtime.program, "run", "--rm", "--interactive", "--name=" + run.name,
      "--label=caisson.owner=" + run.owner, "--hostname=" + policy.hostname, "--network=none",
      "--ipc=private", "--cgroupns=private", "--cap-drop=ALL", "--security-opt=no-new-privileges",
      "--security-opt=seccomp=" + run.seccomp_file, "--user=" + user + ":" + user, "--read-only",
      "--tmpfs=" + TmpOptions(runtime.kind, policy), "--shm-size=64m", "--workdir=/",
      "--log-driver=none", "--pull=never", "--memory=" + memory, "--memory-swap=" + memory,
      "--cpus=" + Decimal(policy.cpus), "--pids-limit=" + std::to_string(policy.pids), "--init",
      // Below every usual hard limit: a runtime that raises limits may not be allowed to.
      "--ulimit=nofile=1024:1024", "--ulimit=core=0:0"};
  if (runtime.kind == RuntimeKind::kDocker) words.emplace_back("--no-healthcheck");
  if (runtime.kind == RuntimeKind::kPodman) {
    words.emplace_back("--read-only-tmpfs=false");
    // It raises this one, too. Of all containers of the user together.
    words.emplace_back("--ulimit=nproc=4096:4096");
  }
  for (const std::string& variable : policy.environment) words.push_back("--env=" + variable);
  words.push_back("--entrypoint=" + policy.arguments.at(0));
  words.push_back(run.image);
  words.insert(words.end(), policy.arguments.begin() + 1, policy.arguments.end());
  return words;
}

}  // namespace caisson::machine::oci
