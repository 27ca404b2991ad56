// SPDX-License-Identifier: Apache-2.0
// What a driver keeps on disk of each machine: enough to find and remove everything of it after
// the helper was killed, at whatever point. A record is written before what it speaks of is done,
// in one step (rename). No kernel calls beyond files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "machine/driver.h"
#include "machine/groups.h"

namespace caisson::machine {

enum class Phase : std::uint8_t {
  kMaking,   // or prepared for later: to be removed when its maker is gone
  kRunning,  // or stopped, when its agent is gone
  kPausedInMemory,
  kPausedOnDisk,
  kRemoving,
};
std::string_view NameOf(Phase phase);

struct Record {
  std::uint32_t index = 0;  // of its ids; unique among the machines of this state directory
  std::string slot;         // its directory and its cgroups are named by it
  Phase phase = Phase::kMaking;
  uid_t owner = 0;
  MachineSpec spec;  // id empty: prepared for nobody yet
  Groups groups;
  std::uint32_t network = 0;  // index in the gateway; 0: none
  std::string ip;
  pid_t agent = 0;                // or what runs it, as QEMU does; 0: none
  std::uint64_t agent_start = 0;  // in clock ticks since the boot
  std::string boot;               // the host's boot id, when the agent was started
  json::Value more;               // of its driver alone; null: nothing
};

json::Value ToJson(const Record& record);
// `slot` is the directory's name: the record must be of it. Fails with machine.state.
Result<Record> RecordFromJson(const json::Value& value, const std::string& slot);

// `durable`: it is there after a power failure, too.
Result<void> WriteRecord(const std::string& directory, const Record& record, bool durable);
Result<Record> ReadRecord(const std::string& directory, const std::string& slot);

}  // namespace caisson::machine
