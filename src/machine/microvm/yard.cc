// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/yard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "images/files.h"
#include "json/writer.h"
#include "machine/microvm/command_line.h"
#include "machine/microvm/process.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{20'000};
constexpr milliseconds kLoadPatience{60'000};
constexpr milliseconds kTrialPatience{10'000};
constexpr milliseconds kAdoptPatience{5'000};
constexpr std::uint64_t kMebibyte = 1u << 20;
// The kernel, the agent and what it keeps beside the commands' own memory.
constexpr std::uint64_t kGuestReserve = 80 * kMebibyte;
// QEMU beside the machine's memory: its code and heap, translations, files that it reads.
constexpr std::uint64_t kQemuReserve = 256 * kMebibyte;
constexpr unsigned kMaxProcessors = 16;
constexpr std::uint64_t kThreads = 96;  // of QEMU and what stands beside it, without processors
constexpr std::uint64_t kTrialBytes = 128 * kMebibyte;
// What is written beside memory: the state of devices.
constexpr std::uint64_t kFileSlack = 64 * kMebibyte;
constexpr std::uint64_t kGrowth = 4;

// The pace of the time stamp counter, which emulated machines see.
std::uint64_t MeasureTscKhz() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const std::uint64_t first = __rdtsc();
  std::this_thread::sleep_for(milliseconds(50));
  const std::uint64_t ticks = __rdtsc() - first;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return static_cast<std::uint64_t>(static_cast<double>(ticks) / seconds / 1000.0);
}

std::string MachineId() {
  auto text = os::ReadSmallFile("/proc/sys/kernel/random/uuid").value_or("");
  std::erase_if(text, [](char c) { return c == '-' || c == '\n'; });
  return text;
}

std::string HostsFile(const MachineSpec& spec, const std::string& ip) {
  return "127.0.0.1 localhost\n" + (ip.empty() ? "127.0.1.1" : ip) + " " + spec.host_name + "\n";
}

// caisson-vmm reads the memory of its child QEMU to save it.
Result<void> CheckPtraceScope() {
  const auto scope = os::ReadSmallFile("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope || std::atoi(scope->c_str()) <= 1) return {};
  return Fail(
      errors::kMachineUnavailable,
      "virtual machines cannot be saved with kernel.yama.ptrace_scope above 1, since nobody "
      "may read the memory of his own children then; set it to 1");
}

std::uint64_t WholeBlocks(std::uint64_t bytes) { return bytes / 4096 * 4096; }

}  // namespace

std::uint64_t MaxFileBytes(const MachineSpec& spec) {
  return std::max(spec.disk_bytes * kGrowth, RamBytes(spec.memory_bytes) + kFileSlack);
}

unsigned ProcessorsOf(double cpus) {
  const unsigned host = std::max(1u, std::thread::hardware_concurrency());
  const double wanted = std::ceil(std::clamp(cpus, 1.0, static_cast<double>(kMaxProcessors)));
  return std::min(static_cast<unsigned>(wanted), host);
}

std::uint64_t RamBytes(std::uint64_t memory_bytes) {
  const std::uint64_t bytes = memory_bytes + kGuestReserve;
  return (bytes + 2 * kMebibyte - 1) / (2 * kMebibyte) * (2 * kMebibyte);
}

Result<std::unique_ptr<Yard>> Yard::Open(const MicrovmOptions& options, SharedParts parts) {
  CAISSON_ASSIGN(images::Store store, images::Store::Open(options.images));
  CAISSON_ASSIGN(StateDirectory state, StateDirectory::Open(options.state));
  std::unique_ptr<Yard> yard(
      new Yard(options, std::move(parts), std::move(store), std::move(state)));
  CAISSON_TRY(yard->Furnish());
  return yard;
}

Result<void> Yard::FindMonitor() {
  if (options_.qemu.empty()) options_.qemu = os::FindProgram("qemu-system-x86_64");
  if (options_.qemu.empty()) {
    return Fail(errors::kMachineUnavailable,
                "there is no qemu-system-x86_64 here (Debian's package qemu-system-x86)");
  }
  os::Program ask;
  ask.arguments = {options_.qemu, "--version"};
  CAISSON_ASSIGN(const os::ProgramEnd version, os::RunProgram(ask));
  qemu_version_ = version.output.substr(0, version.output.find('\n'));
  if (::access(options_.preload.c_str(), R_OK) == 0) return CheckPtraceScope();
  return Fail(errors::kMachineUnavailable,
              options_.preload + " is missing: " + os::ErrnoText(errno));
}

Result<void> Yard::Furnish() {
  CAISSON_TRY(FindMonitor());
  for (const std::string& file : {options_.agent, options_.init, options_.vmm}) {
    if (::access(file.c_str(), R_OK) != 0) {
      return Fail(errors::kMachineUnavailable, file + " is missing: " + os::ErrnoText(errno));
    }
  }
  CAISSON_TRY(Groups::Plan("probe"));  // says now what every machine would fail of
  if (options_.cache.empty()) options_.cache = state_.path();
  const std::string disks = options_.cache + "/vm-disks";
  for (const std::string& part : {TemplatesDirectory(), ImagesDirectory(), disks}) {
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return Fail(errors::kMachineState, "mkdir " + part + ": " + os::ErrnoText(errno));
    }
  }
  disks_.emplace(disks);
  CAISSON_ASSIGN(boot_, MakeBoot(state_.path() + "/boot"));
  tsc_khz_ = MeasureTscKhz();
  return ChooseAccelerator();
}

Result<BootFiles> Yard::MakeBoot(const std::string& directory) const {
  return MakeBootFiles(options_.kernel, options_.agent, options_.init, directory);
}

// Boots the kernel and our first program, which ends at once, inside of the walls that every
// machine has, and with an id that no machine gets.
Result<void> Yard::TryKvm() const {
  const std::string slot = state_.NewSlot(kMaxMachines);
  CAISSON_ASSIGN(Groups groups, Groups::Plan(slot));
  CAISSON_ASSIGN(const std::string directory, state_.MakeMachine(slot));
  auto tried = groups.Make();
  if (tried) tried = RunWalledTrial(directory, groups);
  const auto ended = groups.Remove(kPatience);
  std::error_code error;
  fs::remove_all(directory, error);
  if (!ended) return ended;
  if (tried) return {};
  return Fail(errors::kMachineUnavailable,
              fmt::format("a trial boot with KVM, which has {} s, did not come up: {}",
                          kTrialPatience.count() / 1000, tried.error().message));
}

Result<void> Yard::RunWalledTrial(const std::string& directory, const Groups& groups) const {
  Plan plan;
  plan.uid = IdRanges::FirstIdOf(kMaxMachines);
  plan.scratch = state_.scratch();
  plan.qemu = options_.qemu;
  plan.boot = boot_.directory;
  plan.accelerator = Accelerator::kKvm;
  plan.ram_bytes = kTrialBytes;
  plan.shares_memory = true;
  plan.trial = true;
  plan.max_file_bytes = kTrialBytes + kFileSlack;
  Groups limited = groups;
  CAISSON_TRY(
      limited.Limit({.cpus = 1, .memory_bytes = kTrialBytes + kQemuReserve, .pids = kThreads}));
  CAISSON_ASSIGN(const std::vector<os::UniqueFd> tasks, limited.OpenCommandTasks());
  CAISSON_TRY(StartVmm(options_.vmm, directory, std::move(plan), tasks, -1));
  CAISSON_TRY(AskVmm(directory, {.operation = Operation::kAwaitTrial}, kTrialPatience));
  return {};
}

Result<void> Yard::RunTrial(const os::Program& program) {
  std::stop_source stop;
  std::jthread clock([&stop](const std::stop_token& over) {
    const auto end = std::chrono::steady_clock::now() + kTrialPatience;
    while (!over.stop_requested() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(20));
    }
    stop.request_stop();
  });
  const auto end = os::RunProgram(program, stop.get_token());
  clock.request_stop();
  if (!end) return std::unexpected(end.error());
  if (end->output.find(kTrialWords) != std::string::npos) return {};
  return Fail(errors::kMachineUnavailable,
              fmt::format("a trial boot with KVM did not come up within {} s{}{}",
                          kTrialPatience.count() / 1000, end->messages.empty() ? "" : ": ",
                          end->messages.substr(0, 200)));
}

Result<std::string> Yard::WhyNoKvm() {
  const std::string file = state_.path() + "/kvm-trial";
  const std::string key = state_.boot() + " " + boot_id() + " " + monitor() + "\n";
  const std::string known = os::ReadSmallFile(file).value_or("");
  if (known.starts_with(key)) return known.substr(key.size());
  const auto tried = TryKvm();
  std::string why = tried ? "" : tried.error().message;
  CAISSON_TRY(images::WriteFile(file, key + why));
  return why;
}

Result<void> Yard::ChooseAccelerator() {
  std::string why = "there is no /dev/kvm that can be opened";
  if (!options_.try_kvm) why = "it shall not be tried";
  if (options_.try_kvm && ::access("/dev/kvm", R_OK | W_OK) == 0) {
    CAISSON_ASSIGN(why, WhyNoKvm());
    if (why.empty()) {
      accelerator_ = Accelerator::kKvm;
      return {};
    }
  }
  if (options_.allow_emulation) {
    accelerator_ = Accelerator::kTcg;
    return {};
  }
  return Fail(errors::kMachineUnavailable,
              "virtual machines need KVM, and " + why +
                  "; --allow-emulation makes them with an emulated processor, which is slow");
}

Result<std::string> Yard::ErofsOf(const images::Image& image) {
  const std::string file = ImagesDirectory() + "/" + image.id + ".erofs";
  if (::access(file.c_str(), R_OK) == 0) return file;
  const std::lock_guard lock(images_mutex_);
  if (::access(file.c_str(), R_OK) == 0) return file;
  if (os::FindProgram("mkfs.erofs").empty()) {
    return Fail(errors::kMachineUnavailable,
                "there is no mkfs.erofs (Debian's package erofs-utils)");
  }
  // Not compressed: what the guest reads is the host's page cache, which machines share.
  const std::string draft = fmt::format("{}.{}", file, ::getpid());
  os::Program program;
  program.arguments = {"mkfs.erofs", "--quiet", "-T0", "--all-root", draft, image.root};
  auto made = os::RunProgram(program);
  if (made && !made->succeeded()) {  // older ones know no --quiet
    program.arguments.erase(program.arguments.begin() + 1);
    made = os::RunProgram(program);
  }
  if (!made) return std::unexpected(made.error());
  if (!made->succeeded()) {
    (void)::unlink(draft.c_str());
    return Fail(errors::kMachineFull, "the image cannot be made into a file system: mkfs.erofs " +
                                          os::ToText(made->status));
  }
  ::chmod(draft.c_str(), 0444);
  if (::rename(draft.c_str(), file.c_str()) != 0) return os::SyscallError("make " + file);
  return file;
}

void Yard::CleanImages() {
  const std::lock_guard lock(images_mutex_);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(ImagesDirectory(), error)) {
    // IMAGE.erofs, or IMAGE.erofs.PID while that process makes it.
    const std::string name = entry.path().filename();
    const std::size_t end = name.find(".erofs");
    const pid_t maker = std::atoi(entry.path().extension().c_str() + 1);
    const bool is_draft = maker > 0;
    const bool is_made = is_draft && (maker == ::getpid() || ::kill(maker, 0) == 0);
    if (is_made || (!is_draft && store_.Find(name.substr(0, end)))) continue;
    std::error_code ignored;
    fs::remove(entry.path(), ignored);
  }
}

Result<void> Yard::MakeDisk(std::uint64_t bytes, const std::string& file) {
  return disks_->Make(WholeBlocks(bytes), file);
}

Result<void> Yard::GiveTo(const std::string& path, const Slot& slot) {
  const uid_t id = IdRanges::FirstIdOf(slot.record.index);
  if (::lchown(path.c_str(), id, id) != 0) return os::SyscallError("chown " + path);
  return {};
}

Result<void> Yard::NewFile(const std::string& path, const Slot& slot, std::uint64_t bytes) {
  (void)::unlink(path.c_str());
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    if (errno == ENOSPC) return Fail(errors::kMachineFull, "the host's disk is full");
    return os::SyscallError("make " + path);
  }
  return GiveTo(path, slot);
}

Result<void> Yard::TakeBack(const std::string& path) {
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      ::fchown(file.get(), 0, 0) != 0 || ::fchmod(file.get(), 0444) != 0) {
    return os::SyscallError("take back " + path);
  }
  return {};
}

Result<std::unique_ptr<Slot>> Yard::NewSlot(const std::string& image, const MachineSpec& spec) {
  auto slot = std::make_unique<Slot>();
  auto held = store_.Hold(image);
  if (!held) return Fail(errors::kMachineNoImage, held.error().message);
  slot->image = *std::move(held);
  Record& record = slot->record;
  CAISSON_ASSIGN(record.index, parts_.ids->Take());
  record.slot = state_.NewSlot(record.index);
  record.spec = spec;
  record.spec.image = slot->image->image.id;
  slot->directory = state_.machines() + "/" + record.slot;
  const auto make = [&]() -> Result<void> {
    CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
    CAISSON_TRY(state_.MakeMachine(record.slot));
    CAISSON_TRY(slot->Write(false));
    for (const std::string& part : {slot->own(), slot->saved()}) {
      if (::mkdir(part.c_str(), 0755) != 0) return os::SyscallError("mkdir " + part);
    }
    return {};
  };
  if (auto made = make(); !made) {
    (void)Remove(*slot);
    return Fail(std::move(made).error());
  }
  return slot;
}

Result<Plan> Yard::PlanOf(Slot& slot, const Origin& origin, bool named, const TapPlace& tap) {
  const Record& record = slot.record;
  Plan plan;
  plan.uid = IdRanges::FirstIdOf(record.index);
  plan.scratch = state_.scratch();
  plan.boot = boot_.directory;
  CAISSON_ASSIGN(plan.image, ErofsOf(slot.image->image));
  plan.own = slot.own();
  plan.base = origin.base;
  plan.mounts_disk = !origin.has_disk;
  plan.accelerator = accelerator_;
  plan.ram_bytes = RamBytes(record.spec.memory_bytes);
  plan.processors = ProcessorsOf(record.spec.cpus);
  plan.network = networks().enforces();
  plan.address = tap.place.address;
  plan.mac = tap.mac;
  plan.gateway = tap.gateway;
  plan.gateway_mac = tap.gateway_mac;
  plan.boot_patience_ms = static_cast<std::uint32_t>(options_.boot_patience.count());
  if (named) {
    plan.host_name = record.spec.host_name;
    plan.machine_id = MachineId();
    plan.hosts_file = HostsFile(record.spec, record.ip);
    for (const std::string& server : networks().name_servers()) {
      plan.resolv_file += "nameserver " + server + "\n";
    }
  }
  plan.disk_bytes = WholeBlocks(record.spec.disk_bytes);
  plan.memory_bytes = record.spec.memory_bytes;
  plan.pids = record.spec.pids;
  plan.max_file_bytes = MaxFileBytes(record.spec);
  CAISSON_TRY(Complete(plan, slot, tap));
  return plan;
}

Result<void> Yard::Complete(Plan& plan, const Slot& slot, const TapPlace&) const {
  plan.qemu = options_.qemu;
  plan.preload = options_.preload;
  plan.tsc_khz = tsc_khz_;
  if (!plan.base.empty()) return {};
  return NewFile(slot.own() + "/boot-memory", slot, plan.ram_bytes);
}

std::uint64_t Yard::reserve() const { return kQemuReserve; }

Result<void> Yard::Start(Slot& slot, const Origin& origin, bool named) {
  Record& record = slot.record;
  CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
  CAISSON_ASSIGN(const TapPlace tap, MakeNetwork(slot));
  record.network = tap.place.index;
  record.ip = tap.place.address;
  record.more = json::Object{{kMaxFileMember, MaxFileBytes(record.spec)}};
  CAISSON_TRY(slot.Write(false));
  if (record.network != 0) {
    CAISSON_TRY(networks().Apply(record.network, record.spec.network, record.spec.sent_cap));
    CAISSON_TRY(networks().Share(record.network, record.owner, record.spec.shared_networks));
  }
  CAISSON_ASSIGN(Plan plan, PlanOf(slot, origin, named, tap));
  return Launch(slot, std::move(plan), tap);
}

Result<void> Yard::StartTemplate(Slot& slot) {
  CAISSON_ASSIGN(slot.record.groups, Groups::Plan(slot.record.slot));
  CAISSON_TRY(slot.Write(false));
  CAISSON_ASSIGN(Plan plan, PlanOf(slot, {}, false, {}));
  plan.shares_memory = true;
  return Launch(slot, std::move(plan), {});
}

Result<void> Yard::StartWaiting(Slot& slot, const std::string& base) {
  Record& record = slot.record;
  CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
  CAISSON_ASSIGN(slot.tap, MakeNetwork(slot));
  record.network = slot.tap.place.index;
  record.ip = slot.tap.place.address;
  record.more = json::Object{{kMaxFileMember, MaxFileBytes(record.spec)}};
  CAISSON_TRY(slot.Write(false));
  CAISSON_ASSIGN(Plan plan, PlanOf(slot, {.base = base, .has_disk = false}, true, slot.tap));
  plan.waits = true;
  CAISSON_TRY(Launch(slot, std::move(plan), slot.tap));
  slot.tap.tap.Reset();
  CAISSON_TRY(
      AskVmm(slot.directory, {.operation = Operation::kAwaitAgent}, options_.boot_patience));
  return {};
}

Result<void> Yard::Begin(Slot& slot) {
  const Record& record = slot.record;
  CAISSON_TRY(slot.Write(false));
  if (record.network != 0) {
    CAISSON_TRY(networks().Apply(record.network, record.spec.network, record.spec.sent_cap));
  }
  CAISSON_ASSIGN(const Plan plan,
                 PlanOf(slot, {.base = slot.saved(), .has_disk = false}, true, slot.tap));
  CAISSON_TRY(Limit(slot, plan));
  CAISSON_ASSIGN(const std::string text, json::Write(ToJson(plan)));
  CAISSON_TRY(AskVmm(slot.directory, {.operation = Operation::kBegin}, kLoadPatience, text));
  return {};
}

Result<void> Yard::Limit(Slot& slot, const Plan& plan) {
  return slot.record.groups.Limit(
      {.cpus = plan.shares_memory || plan.waits ? plan.processors : slot.record.spec.cpus,
       .memory_bytes = plan.ram_bytes + reserve(),
       .pids = kThreads + plan.processors});
}

Result<void> Yard::Launch(Slot& slot, Plan plan, const TapPlace& tap) {
  Record& record = slot.record;
  CAISSON_TRY(record.groups.Make());
  CAISSON_TRY(Limit(slot, plan));
  CAISSON_ASSIGN(const std::vector<os::UniqueFd> tasks, record.groups.OpenCommandTasks());
  CAISSON_ASSIGN(Started started,
                 StartVmm(options_.vmm, slot.directory, std::move(plan), tasks, tap.tap.get()));
  record.agent = started.pid;
  record.agent_start = StartOf(started.pid);
  record.boot = state_.boot();
  slot.process = std::move(started.pidfd);
  CAISSON_TRY(slot.Write(false));
  CAISSON_TRY(AskVmm(slot.directory, {.operation = Operation::kAwaitRunning}, kLoadPatience));
  return AfterStart(slot);
}

Result<void> Yard::Stop(Slot& slot) {
  CAISSON_TRY(slot.record.groups.Remove(kPatience));
  slot.process.Reset();
  slot.record.agent = 0;
  if (slot.record.network != 0) CAISSON_TRY(networks().Remove(slot.record.network));
  slot.record.network = 0;
  slot.record.ip.clear();
  return {};
}

Result<void> Yard::Remove(Slot& slot) {
  CAISSON_TRY(Stop(slot));
  std::error_code error;
  fs::remove_all(slot.directory, error);
  if (error) {
    return Fail(errors::kMachineState, "remove " + slot.directory + ": " + error.message());
  }
  slot.image.reset();
  parts_.ids->Return(slot.record.index);
  return {};
}

Result<std::vector<std::unique_ptr<Slot>>> Yard::Adopt() {
  CAISSON_ASSIGN(const std::vector<std::string> names, state_.Slots());
  std::vector<std::unique_ptr<Slot>> adopted;
  for (const std::string& name : names) {
    CAISSON_ASSIGN(std::unique_ptr<Slot> slot, AdoptOne(name));
    if (slot != nullptr) adopted.push_back(std::move(slot));
  }
  return adopted;
}

// Null when it was nothing that stays.
Result<std::unique_ptr<Slot>> Yard::AdoptOne(const std::string& name) {
  auto slot = std::make_unique<Slot>();
  switch (FindSlot(state_, name, *parts_.ids, store_, *slot)) {
    case Found::kUnreadable: {
      CAISSON_ASSIGN(Groups groups, Groups::Plan(name));
      CAISSON_TRY(groups.Remove(kPatience));
      CAISSON_TRY(state_.SetAside(name, "own/disk.img"));
      return nullptr;
    }
    case Found::kUnfinished:
      CAISSON_TRY(Remove(*slot));
      return nullptr;
    case Found::kKept:
      break;
  }
  slot->process = ProcessOf(slot->record, state_.boot());
  // Saved for a copy by a helper that was killed before the machine went on: it has other memory
  // and another disk by now.
  if (slot->record.phase != Phase::kPausedInMemory) {
    std::error_code error;
    fs::remove_all(slot->frozen(), error);
    if (error) {
      return Fail(errors::kMachineState, "remove " + slot->frozen() + ": " + error.message());
    }
  }
  if (slot->record.phase == Phase::kPausedOnDisk || !slot->Lives()) {
    CAISSON_TRY(Stop(*slot));
  } else if (slot->record.network != 0 &&
             (!networks().Adopt(slot->record.network, slot->record.spec.network,
                                slot->record.spec.sent_cap) ||
              !networks().Share(slot->record.network, slot->record.owner,
                                slot->record.spec.shared_networks))) {
    CAISSON_TRY(Stop(*slot));
  } else {
    // As the record says, whatever the helper was at when it was killed. One that does not answer
    // is found out by who needs it.
    const bool paused = slot->record.phase == Phase::kPausedInMemory;
    (void)AskVmm(slot->directory, {.operation = paused ? Operation::kStop : Operation::kGoOn},
                 kAdoptPatience);
  }
  return slot;
}

}  // namespace caisson::machine::microvm
