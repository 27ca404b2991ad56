// SPDX-License-Identifier: Apache-2.0
#include "isolate/oci/oci.h"

#include <cerrno>
#include <utility>

#include "errors/oci.h"
#include "isolate/job_file.h"
#include "isolate/oci/call.h"
#include "os/seccomp.h"

namespace caisson::isolate::oci {
namespace {

namespace machine_oci = machine::oci;
using machine_oci::Wall;

constexpr std::uint64_t kInodeBytes = 4096;

// Of the container's runtime and the interpreter.
constexpr std::uint64_t kLeastMemory = 16u << 20;

std::uint64_t ExpectedWallsOf(const OciOptions& options) {
  constexpr std::pair<Wall, ExpectedWalls> kWalls[] = {
      {Wall::kNoNewPrivileges, kExpectNoNewPrivileges},
      {Wall::kCapabilities, kExpectNoCapabilities},
      {Wall::kReadOnlyRoot, kExpectReadOnlyRoot},
      {Wall::kNetworkNamespace, kExpectNoNetwork},
      {Wall::kUser, kExpectOtherUser},
      {Wall::kSeccomp, kExpectOuterFilter},
      {Wall::kPidNamespace, kExpectFirstProcess}};
  std::uint64_t expected = 0;
  if (!options.without_script_filter) expected |= kExpectFilter;
  for (const auto& [wall, bit] : kWalls) {
    if (!options.without.Has(wall)) expected |= bit;
  }
  return expected;
}

}  // namespace

OciRuntime::OciRuntime(OciOptions options, machine_oci::State state)
    : options_(std::move(options)), state_(std::move(state)) {}
OciRuntime::~OciRuntime() = default;

Result<std::unique_ptr<OciRuntime>> OciRuntime::Create(OciOptions options) {
  CAISSON_ASSIGN(machine_oci::State state,
                 machine_oci::State::Open(options.state, NameOf(options.runtime.kind)));
  const bool with_init = !TakesBundles(options.runtime.kind);
  std::unique_ptr<OciRuntime> runtime(new OciRuntime(std::move(options), std::move(state)));
  runtime->reaped_ = ReapOrphans(runtime->state_, runtime->options_.runtime).size();
  runtime->syscalls_ = jail::ContainerSyscalls(runtime->options_.processes, with_init);
  CAISSON_ASSIGN(runtime->filter_,
                 os::BuildFilter(jail::ScriptSyscalls(runtime->options_.processes), EPERM));
  return runtime;
}

machine_oci::ContainerPolicy OciRuntime::MakePolicy(const ScriptLimits& limits,
                                                    std::string_view program) const {
  machine_oci::ContainerPolicy policy;
  policy.root = options_.root;
  policy.arguments = {options_.python, "-I", "-B", "-c", std::string(program)};
  // A library's threads would be one per processor of the host, each with buffers of its own.
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    policy.environment.push_back(std::string(name) + "=1");
  }
  policy.memory_bytes = limits.memory_bytes;
  policy.cpus = options_.cpus;
  policy.pids = limits.pids;
  policy.tmp_bytes = limits.disk_bytes != 0 ? limits.disk_bytes : limits.memory_bytes;
  policy.tmp_inodes = std::max<std::uint64_t>(policy.tmp_bytes / kInodeBytes, 64);
  policy.syscalls = syscalls_;
  policy.without = options_.without;
  return policy;
}

std::string OciRuntime::MakeStart(const ScriptLimits& limits, const Compiled& compiled) const {
  Head head;
  const bool passes = PassesDescriptors(options_.runtime.kind);
  head.channel = passes ? 3 : 1;
  if (options_.unguarded) head.flags |= kUnguarded;
  if (!passes) head.flags |= kPumpStdout;
  head.expected = ExpectedWallsOf(options_);
  if (!options_.without.Has(Wall::kMemory)) head.data_bytes = DataBytes(limits.memory_bytes);
  head.file_bytes = limits.disk_bytes;
  head.filter = {reinterpret_cast<const char*>(filter_.data()),
                 filter_.size() * sizeof(sock_filter)};
  return MakeHead(compiled, head);
}

Result<Compiled> OciRuntime::Compile() {
  CAISSON_ASSIGN(const std::string input, CompileInput(options_.processes.has_value()));
  CAISSON_ASSIGN(const std::string output, RunTrusted(state_,
                                                      {.runtime = &options_.runtime,
                                                       .policy = MakePolicy({}, CompileProgram()),
                                                       .image = options_.image},
                                                      input));
  return ReadCompiled(output);
}

Result<std::shared_ptr<const Compiled>> OciRuntime::GetCompiled() {
  const std::lock_guard lock(mutex_);
  if (compiled_ == nullptr) {
    CAISSON_ASSIGN(Compiled compiled, Compile());
    compiled_ = std::make_shared<const Compiled>(std::move(compiled));
  }
  return compiled_;
}

Result<void> OciRuntime::Prepare() {
  CAISSON_TRY(GetCompiled());
  return {};
}

Result<ScriptOutcome> OciRuntime::Run(const ScriptJob& job, ScriptSink& sink,
                                      std::stop_token stop) {
  if (job.limits.cpu.count() > 0 && !CountsCpu(options_.runtime.kind)) {
    return Fail(errors::kOciUnavailable, "the processor time of a run cannot be counted in " +
                                             std::string(NameOf(options_.runtime.kind)) +
                                             "; leave the limit out, or use runc");
  }
  if (job.limits.memory_bytes < kLeastMemory) {
    return TooLittleMemory(job.limits.memory_bytes, kLeastMemory);
  }
  CAISSON_ASSIGN(const std::shared_ptr<const Compiled> compiled, GetCompiled());
  CAISSON_ASSIGN(CallResult result, RunCall(state_,
                                            {.runtime = &options_.runtime,
                                             .policy = MakePolicy(job.limits, StartProgram()),
                                             .image = options_.image},
                                            MakeStart(job.limits, *compiled), job, sink, stop));
  graveyard_.Bury(std::move(result.container));
  return std::move(result.outcome);
}

json::Value OciRuntime::Describe() const {
  const std::lock_guard lock(mutex_);
  json::Object out{{"name", "oci"},
                   {"container_runtime", NameOf(options_.runtime.kind)},
                   {"version", options_.runtime.version},
                   {"program", options_.runtime.program}};
  if (TakesBundles(options_.runtime.kind)) {
    out.Set("root", options_.root);
  } else {
    out.Set("image", options_.image);
  }
  out.Set("python", compiled_ == nullptr ? json::Value() : json::Value(compiled_->python));
  out.Set("may_start_processes", options_.processes.has_value());
  out.Set("orphans_removed", static_cast<std::int64_t>(reaped_));
  out.Set("shared_between_calls", "nothing");
  return out;
}

}  // namespace caisson::isolate::oci
