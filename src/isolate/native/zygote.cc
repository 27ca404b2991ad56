// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "errors/isolate.h"
#include "isolate/native/guest_files.h"
#include "jail/interpreter_syscalls.h"
#include "jail/rooted.h"
#include "json/reader.h"
#include "json/writer.h"
#include "os/seccomp.h"
#include "os/syscall_error.h"

namespace caisson::isolate::native {
namespace {

constexpr std::size_t kMaxReadyBytes = 256u << 10;
constexpr std::int64_t kLookForStopMs = 50;
constexpr const char* kHome = "run/caisson/";

Result<std::vector<sock_filter>> CallFilter(const NativeOptions& options) {
  return os::BuildFilter(jail::ScriptSyscalls(options.processes), EPERM);
}

std::string Bytes(std::span<const sock_filter> filter) {
  return {reinterpret_cast<const char*>(filter.data()), filter.size_bytes()};
}

// The guard's, which the build made of the list of libraries.
Result<json::Value> Policy(const NativeOptions& options) {
  if (options.unguarded) return json::Value();
  CAISSON_ASSIGN(json::Value policy, json::Read(GuardPolicy()));
  policy.mutable_object().Set("processes", options.processes.has_value());
  return policy;
}

Result<std::string> Configuration(const NativeOptions& options, const LibrarySet& set) {
  json::Array imports;
  for (const std::string& module : set.imports) imports.push_back(module);
  json::Object configuration;
  configuration.Set("imports", std::move(imports));
  configuration.Set("warm_up", json::Value(set.warm_up));
  CAISSON_ASSIGN(json::Value policy, Policy(options));
  configuration.Set("policy", std::move(policy));
  configuration.Set("leave_out", json::Value(options.leave_out.walls.bits()));
  configuration.Set("may_execute", json::Value(options.processes.has_value()));
  configuration.Set("control", json::Value(jail::kChannelFd));
  configuration.Set("job", json::Value(kJobFd));
  configuration.Set("channel", json::Value(kChannelFd));
  return json::Write(json::Value(std::move(configuration)));
}

Result<jail::Root> MakeRoot(const NativeOptions& options, const LibrarySet& set) {
  jail::RootOptions root{.directory = options.root, .tmp_bytes = 16u << 20};
  for (const GuestFile& file : GuestFiles()) {
    root.files.push_back({kHome + std::string(file.name), std::string(file.content)});
  }
  CAISSON_ASSIGN(std::string configuration, Configuration(options, set));
  CAISSON_ASSIGN(const std::vector<sock_filter> filter, CallFilter(options));
  root.files.push_back({std::string(kHome) + "zygote.json", std::move(configuration)});
  root.files.push_back({std::string(kHome) + "call.bpf", Bytes(filter)});
  return jail::Root(std::move(root));
}

std::vector<std::string> Environment(const NativeOptions& options) {
  std::vector<std::string> environment = {
      "HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp", "LANG=C.UTF-8",
      // A library that starts threads while it is imported would leave them behind in a fork.
      "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1",
      "MPLCONFIGDIR=/tmp/matplotlib", "MPLBACKEND=agg"};
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  return environment;
}

Result<os::FdPair> MakeControl() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return os::SyscallError("socketpair");
  }
  return os::FdPair{os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

}  // namespace

Result<std::unique_ptr<Zygote>> Zygote::Start(const NativeOptions& options, const LibrarySet& set,
                                              const std::stop_token& stop) {
  CAISSON_ASSIGN(const jail::Root root, MakeRoot(options, set));
  CAISSON_ASSIGN(const std::vector<sock_filter> filter,
                 os::BuildFilter(jail::ZygoteSyscalls(options.processes), EPERM));
  CAISSON_ASSIGN(os::FdPair control, MakeControl());
  std::unique_ptr<Zygote> zygote(new Zygote());
  zygote->name_ = set.name;
  zygote->log_ = os::UniqueFd(::memfd_create("caisson-zygote-log", MFD_CLOEXEC));
  if (!zygote->log_.valid()) return os::SyscallError("memfd_create");
  const jail::RootedOptions rooted{
      .root = &root,
      .program = options.python,
      .arguments = {"python3", "-I", "-B", std::string("/") + kHome + "caisson_zygote.py"},
      .environment = Environment(options),
      .channel = control.second.get(),
      .log = zygote->log_.get(),
      .limits = {.memory_bytes = options.zygote_bytes, .cpus = 0, .pids = 0},
      .filter = filter,
      .leave_out = options.leave_out};
  CAISSON_ASSIGN(zygote->jailed_, jail::SpawnInRoot(rooted));
  control.second.Reset();
  zygote->control_ = std::move(control.first);
  CAISSON_TRY(zygote->AwaitReady(options.import_timeout, stop));
  return zygote;
}

std::unexpected<Status> Zygote::NotReady(const std::string& why) const {
  std::string log(4096, '\0');
  const off_t end = ::lseek(log_.get(), 0, SEEK_END);
  const off_t start = std::max<off_t>(0, end - static_cast<off_t>(log.size()));
  const ssize_t n = ::pread(log_.get(), log.data(), log.size(), start);
  log.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  Status status{errors::kIsolateRootUnusable,
                "The interpreter of library set \"" + name_ + "\" did not start: " + why +
                    ". The root file system needs Python 3.11 or newer with those libraries; "
                    "what it wrote follows.",
                {},
                std::move(log)};
  return std::unexpected(std::move(status));
}

Result<void> Zygote::AwaitReady(std::chrono::milliseconds timeout, const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text(kMaxReadyBytes, '\0');
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return NotReady("its imports took longer than " + std::to_string(timeout.count()) + " ms");
    }
    if (stop.stop_requested()) return NotReady("it is not wanted any more");
    pollfd event{control_.get(), POLLIN, 0};
    const auto slice = std::min<std::int64_t>(left.count(), kLookForStopMs);
    if (::poll(&event, 1, static_cast<int>(slice)) <= 0) continue;
    const ssize_t n = ::recv(control_.get(), text.data(), text.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const auto status = jailed_.process.Wait(std::chrono::seconds(5));
      return NotReady("it " + (status ? os::ToText(*status) : "closed its channel"));
    }
    text.resize(static_cast<std::size_t>(n));
    break;
  }
  auto ready = json::Read(text);
  if (!ready || !ready->is_object() || ready->Find("python") == nullptr) {
    return NotReady("it does not speak the protocol");
  }
  ready_ = *std::move(ready);
  return {};
}

void Zygote::GiveUp() {
  given_up_ = true;
  jailed_.process.Kill();
}

bool Zygote::alive() const {
  if (given_up_) return false;
  // A process that dies closes its descriptors first and is seen to have ended later.
  pollfd events[2] = {{jailed_.process.pidfd(), POLLIN, 0}, {control_.get(), 0, 0}};
  return jailed_.process.running() && ::poll(events, 2, 0) == 0;
}

}  // namespace caisson::isolate::native
