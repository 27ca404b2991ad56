// SPDX-License-Identifier: Apache-2.0
#include "machine/recorded_machine.h"

#include <utility>

namespace caisson::machine {

State RecordedMachine::StateNow() {
  switch (base().record.phase) {
    case Phase::kRunning:
      return Lives() ? State::kRunning : State::kStopped;
    case Phase::kPausedInMemory:
      return Lives() ? State::kPausedInMemory : State::kPausedOnDisk;
    case Phase::kPausedOnDisk:
      return State::kPausedOnDisk;
    case Phase::kMaking:
    case Phase::kRemoving:
      break;
  }
  return State::kStopped;
}

Machine RecordedMachine::View() {
  const Record& record = base().record;
  return {.id = record.spec.id,
          .state = StateNow(),
          .ip = record.ip,
          .image = record.spec.image,
          .disk_bytes = record.spec.disk_bytes};
}

Result<void> RecordedMachine::SetPhase(Phase phase, bool durable) {
  base().record.phase = phase;
  return base().Write(durable);
}

Result<void> RecordedMachine::Remove() {
  CAISSON_TRY(SetPhase(Phase::kRemoving, false));
  return TakeAway();
}

Result<void> RecordedMachine::SetNetwork(const egress::Policy& policy, SentCap cap) {
  Record& record = base().record;
  if (record.network != 0) CAISSON_TRY(networks().Apply(record.network, policy, cap));
  const egress::Policy before = std::exchange(record.spec.network, policy);
  const SentCap cap_before = std::exchange(record.spec.sent_cap, cap);
  // Durable: rules that were taken back must not come back after the host has lost its power.
  if (policy == before && cap == cap_before) return {};
  auto written = base().Write(true);
  if (written) return {};
  record.spec.network = before;
  record.spec.sent_cap = cap_before;
  if (record.network != 0) (void)networks().Apply(record.network, before, cap_before);
  return written;
}

// A helper that is killed in between leaves no network open that the record does not name.
Result<void> RecordedMachine::SetSharedNetworks(const std::set<std::string>& shared) {
  Record& record = base().record;
  const std::set<std::string> before = record.spec.shared_networks;
  record.spec.shared_networks.insert(shared.begin(), shared.end());
  if (record.spec.shared_networks != before) CAISSON_TRY(base().Write(false));
  if (record.network != 0) {
    if (auto applied = networks().Share(record.network, record.owner, shared); !applied) {
      record.spec.shared_networks = before;
      (void)base().Write(false);
      return applied;
    }
  }
  record.spec.shared_networks = shared;
  if (shared == before) return {};
  auto written = base().Write(true);
  if (written) return {};
  record.spec.shared_networks = before;
  if (record.network != 0) (void)networks().Share(record.network, record.owner, before);
  return written;
}

Result<Stats> RecordedMachine::StatsWith(std::uint64_t disk_used_bytes) {
  const Record& record = base().record;
  NetworkTraffic traffic;
  if (record.network != 0) {
    CAISSON_ASSIGN(traffic, networks().ReadTraffic(record.network));
  }
  return Stats{.memory_bytes = record.groups.MemoryBytes(),
               .memory_limit_bytes = record.spec.memory_bytes,
               .cpu_nanoseconds = record.groups.CpuNanoseconds(),
               .pids = record.groups.Pids(),
               .disk_bytes = record.spec.disk_bytes,
               .disk_used_bytes = disk_used_bytes,
               .network_received_bytes = traffic.received_bytes,
               .network_sent_bytes = traffic.sent_bytes};
}

}  // namespace caisson::machine
