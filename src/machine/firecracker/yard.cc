// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/yard.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/digest/sha256.h"
#include "errors/machine.h"
#include "images/files.h"
#include "json/writer.h"
#include "machine/firecracker/calls.h"
#include "machine/firecracker/kernel.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::machine::firecracker {
namespace {

// Firecracker beside a machine's memory, and what stands beside it.
constexpr std::uint64_t kReserve = 96u << 20;

}  // namespace

Result<std::unique_ptr<microvm::Yard>> FirecrackerYard::Open(const FirecrackerOptions& options,
                                                             SharedParts parts) {
  CAISSON_ASSIGN(images::Store store, images::Store::Open(options.machines.images));
  CAISSON_ASSIGN(StateDirectory state, StateDirectory::Open(options.machines.state));
  std::unique_ptr<FirecrackerYard> yard(
      new FirecrackerYard(options, std::move(parts), std::move(store), std::move(state)));
  CAISSON_TRY(yard->Furnish());
  return yard;
}

std::string FirecrackerYard::boot_id() const {
  return digest::Sha256Hex(boot().id + " " + ToText(binaries_.version));
}

std::string FirecrackerYard::monitor() const {
  return binaries_.firecracker + " " + ToText(binaries_.version);
}

Result<void> FirecrackerYard::FindMonitor() {
  // First: without it nothing else matters.
  if (::access(options_.kvm.c_str(), R_OK | W_OK) != 0) {
    return Fail(errors::kMachineUnavailable, "Firecracker needs KVM, and " + options_.kvm +
                                                 " cannot be opened: " + os::ErrnoText(errno) +
                                                 "; the driver microvm can emulate a processor");
  }
  CAISSON_ASSIGN(binaries_, FindBinaries(options_.firecracker, options_.jailer));
  return {};
}

Result<microvm::BootFiles> FirecrackerYard::MakeBoot(const std::string& directory) const {
  const microvm::MicrovmOptions& own = options();
  CAISSON_ASSIGN(microvm::BootFiles files,
                 microvm::MakeBootFiles(own.kernel, own.agent, own.init, directory,
                                        microvm::AgentLink::kVsock));
  const std::string kernel = directory + "/vmlinux";
  if (::access(kernel.c_str(), R_OK) != 0) {
    CAISSON_TRY(ExtractKernel(directory + "/vmlinuz", kernel));
  }
  return files;
}

Result<void> FirecrackerYard::ChooseAccelerator() {
  CAISSON_ASSIGN(const std::string why, WhyNoKvm());
  if (!why.empty()) {
    return Fail(errors::kMachineUnavailable, "Firecracker needs KVM, and " + why +
                                                 "; the driver microvm can emulate a "
                                                 "processor");
  }
  UseKvm();
  return {};
}

// Without API and jail: the kernel and the program are ours, and nobody's disk is there.
Result<void> FirecrackerYard::TryKvm() const {
  const std::string file = state().path() + "/kvm-trial.json";
  const json::Object source{{"kernel_image_path", boot().directory + "/vmlinux"},
                            {"initrd_path", boot().directory + "/initrd"},
                            {"boot_args", KernelCommand() + " caisson.trial"}};
  CAISSON_ASSIGN(const std::string text,
                 json::Write(json::Object{
                     {"boot-source", source},
                     {"drives", json::Array()},
                     {"machine-config", json::Object{{"vcpu_count", 1}, {"mem_size_mib", 128}}}}));
  CAISSON_TRY(images::WriteFile(file, text));
  os::Program program;
  program.arguments = {binaries_.firecracker, "--no-api", "--config-file", file};
  const auto tried = RunTrial(program);
  (void)::unlink(file.c_str());
  return tried;
}

Result<TapPlace> FirecrackerYard::MakeNetwork(const microvm::Slot& slot) {
  return networks().MakeNamedTap(IdRanges::FirstIdOf(slot.record.index));
}

Result<void> FirecrackerYard::Complete(microvm::Plan& plan, const microvm::Slot& slot,
                                       const TapPlace& tap) const {
  plan.firecracker = binaries_.firecracker;
  plan.jailer = binaries_.jailer;
  plan.jail_name = slot.record.slot;
  plan.network_namespace = tap.place.path;
  return {};
}

Result<void> FirecrackerYard::AfterStart(const microvm::Slot& slot) {
  if (slot.record.network == 0) return {};
  return networks().AwaitNamedTap(slot.record.network);
}

std::uint64_t FirecrackerYard::reserve() const { return kReserve; }

}  // namespace caisson::machine::firecracker
