// SPDX-License-Identifier: Apache-2.0
// The part of the workshop that writes machines of gVisor to files while they stand still.
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "agent/client.h"
#include "errors/machine.h"
#include "errors/oci.h"
#include "machine/agent_socket.h"
#include "machine/disk.h"
#include "machine/oci/files.h"
#include "machine/oci/launch.h"
#include "machine/oci/machine_config.h"
#include "machine/oci/memory.h"
#include "machine/oci/workshop.h"
#include "os/run_program.h"

namespace caisson::machine::oci {
namespace {

// Of an agent that is well: the guest's processes go on meanwhile.
constexpr std::chrono::milliseconds kLetGoPatience{5'000};
constexpr std::chrono::milliseconds kWakePatience{5'000};

std::string FirstWords(const std::string& text) {
  return text.substr(0, std::min<std::size_t>(text.find('\n'), 400));
}

std::string DrawMachineId() {
  std::array<unsigned char, 16> bytes{};
  (void)!::getrandom(bytes.data(), bytes.size(), 0);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

// runsc, of a container that is there, as it was started: it finds the container's socket by the
// network namespace where paths are too long for one.
Result<void> Workshop::CallRuntime(const Slot& slot, std::vector<std::string> words) const {
  const std::string program = IsRunsc() ? runtime_.program : os::FindProgram("runsc");
  if (program.empty()) return Fail(errors::kOciUnavailable, "runsc is not in PATH any more");
  const std::string what = words.at(0);
  words.insert(words.begin(), {program, "--root=" + slot.runtime()});
  oci::Launch launch{
      .arguments = std::move(words), .place = place_, .messages = slot.bundle() + "/messages.call"};
  if (parts_.networks->enforces()) {
    launch.network = "/proc/" + std::to_string(slot.record.agent) + "/ns/net";
  }
  auto done = Run(launch);
  if (done) return done;
  // What it says is followed by a trace of its stack.
  const std::string said = os::ReadSmallFile(launch.messages, 64u << 10).value_or("");
  return Fail(errors::kOciFailed,
              "runsc " + what + ": " + (said.empty() ? done.error().message : FirstWords(said)));
}

Result<void> Workshop::WakeAgent(const Slot& slot) const {
  CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk()));
  CAISSON_TRY(WakeAgentIn(disk.get(), std::string(kSocketDirectory) + "/" + kSocketName));
  CAISSON_TRY(AwaitAgent(slot));
  CAISSON_ASSIGN(os::UniqueFd connection, Connect(slot));
  return agent::Ping(std::move(connection), kWakePatience);
}

// A copy of a machine gets a name of its own; its processes may have seen the parent's until then.
Result<void> Workshop::Identify(const Slot& slot) const {
  agent::IdentifyRequest request{.host_name = slot.record.spec.host_name,
                                 .machine_id = DrawMachineId()};
  for (auto& [path, content] : FilesOf(slot, true)) request.files.emplace(path, content);
  CAISSON_ASSIGN(os::UniqueFd connection, Connect(slot));
  return agent::Identify(std::move(connection), request);
}

Result<void> Workshop::CheckMemory(const std::string& directory, const MachineSpec& spec) const {
  return oci::CheckMemory(directory, spec, runtime_.version, parts_.networks->enforces());
}

Result<void> Workshop::WriteMemory(const Slot& slot) const {
  CAISSON_ASSIGN(os::UniqueFd connection, Connect(slot));
  CAISSON_TRY(agent::LetGo(std::move(connection), kLetGoPatience));
  CAISSON_TRY(CallRuntime(slot, {"pause", slot.record.slot}));
  CAISSON_TRY(CallRuntime(slot, {"checkpoint", "--image-path=" + slot.memory(), "--leave-running",
                                 "--compression=none", slot.record.slot}));
  return SealMemory(slot.memory(), slot.record.spec, runtime_.version, parts_.networks->enforces());
}

Result<void> Workshop::KeepMemory(Slot& slot) {
  Groups& groups = slot.record.groups;
  if (!KeepsMemory(slot)) {
    return Fail(errors::kMachineUnsupported, "only runsc keeps the memory of a machine");
  }
  if (HasMemory(slot.memory())) return groups.Freeze();
  CAISSON_TRY(GoOn(slot));
  const auto keep = [&]() -> Result<void> {
    CAISSON_TRY(RemoveAll(slot.memory()));
    CAISSON_TRY(MakeDirectory(slot.memory()));
    return WriteMemory(slot);
  };
  auto kept = keep();
  if (!kept) (void)GoOn(slot);
  CAISSON_TRY(groups.Freeze());
  if (kept || kept.error().code == errors::kMachineFull) return kept;
  return Fail(errors::kMachineNotKept,
              "the machine's memory cannot be kept now: " + kept.error().message +
                  "; its files alone can (the extent \"filesystem\")");
}

Result<void> Workshop::GoOn(Slot& slot) {
  CAISSON_TRY(slot.record.groups.Thaw());
  if (::access(slot.memory().c_str(), F_OK) != 0) return {};
  // It fails where the machine does not stand still.
  (void)CallRuntime(slot, {"resume", slot.record.slot});
  CAISSON_TRY(WakeAgent(slot));
  return RemoveAll(slot.memory());
}

}  // namespace caisson::machine::oci
