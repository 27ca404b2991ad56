// SPDX-License-Identifier: Apache-2.0
// Where a driver keeps its machines between two helpers: a directory that belongs to it alone.
//
//   <directory>/lock            held by the helper that works there
//   <directory>/instance        a name, so that cgroups of two directories never have the same one
//   <directory>/machines/SLOT/  record, disk and socket of one machine
//   <directory>/snapshots/      see machine/snapshots.h
//   <directory>/templates/      see machine/disk.h
//   <directory>/scratch/        empty
//   <directory>/set-aside/      machines whose record could not be read
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/record.h"
#include "os/fd.h"

namespace caisson::machine {

class StateDirectory {
 public:
  // Makes what is missing. Fails with machine.state when it belongs to another user, others can
  // write it, or another helper works in it.
  static Result<StateDirectory> Open(const std::string& directory);

  const std::string& path() const { return path_; }  // absolute, without links
  std::string machines() const { return path_ + "/machines"; }
  std::string snapshots() const { return path_ + "/snapshots"; }
  std::string templates() const { return path_ + "/templates"; }
  std::string scratch() const { return path_ + "/scratch"; }
  const std::string& instance() const { return instance_; }
  const std::string& boot() const { return boot_; }  // the host's boot id

  // A name that no other machine of this host has, for its directory and its cgroups.
  std::string NewSlot(std::uint32_t index) const;
  // The directory of a new machine. Fails with machine.full, machine.state.
  Result<std::string> MakeMachine(const std::string& slot) const;
  // The names of the directories of machines.
  Result<std::vector<std::string>> Slots() const;
  // Keeps what is in a machine's directory for the operator when it has the file `disk`, else
  // removes it. Nothing of the machine may run.
  Result<void> SetAside(const std::string& slot, const std::string& disk) const;

 private:
  StateDirectory() = default;
  std::string path_;
  std::string instance_;
  std::string boot_;
  os::UniqueFd lock_;
};

// When a process was started, in clock ticks since the boot; 0 when there is none of this number.
std::uint64_t StartOf(pid_t pid);
// The process that a record names, as a pidfd; invalid when it has ended or was of another boot.
os::UniqueFd ProcessOf(const Record& record, const std::string& boot);
bool HasEnded(int pidfd);

}  // namespace caisson::machine
