// SPDX-License-Identifier: Apache-2.0
// What runs in the double's machines: a process that stands still when the machine does, with a
// memory that can be saved, a disk, and an agent of few words behind the vsock's Unix socket. Its
// commands: `remember WORD`, `recall`, `write WORD`, `read` (of the disk), `identity`, `renewals`,
// `frozen`; and of Python's programs the one that prints 1.
#pragma once

#include <sys/types.h>

#include <string>

#include "json/value.h"
#include "os/fd.h"

namespace caisson::machine::firecracker::fake {

class Guest {
 public:
  // Forks, so that this process must have one thread still. It waits to be begun.
  static Guest Make();

  // Goes on from `memory`, or boots when that is empty; listens at `socket`. Empty, or why not.
  std::string Begin(const json::Object& resources, const std::string& memory);
  void Pause() const;
  // After a save the guest forgets every stream that it has, as by a reset of its transport.
  void Resume() const;
  void ResetTransport() { reset_ = true; }
  // While it stands still.
  std::string Memory() const;

 private:
  struct Shared;
  pid_t pid_ = 0;
  os::UniqueFd control_;
  Shared* shared_ = nullptr;
  mutable bool reset_ = false;
};

}  // namespace caisson::machine::firecracker::fake
