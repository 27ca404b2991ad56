// SPDX-License-Identifier: Apache-2.0
// Memory and processes of gVisor's machines in files: what runsc's checkpoint writes and its
// restore reads, and for which machines that is good. Nothing here runs a program.
//
//   <directory>/checkpoint.img, pages.img, pages_meta.img   runsc's
//   <directory>/machine.json                                ours; written last
#pragma once

#include <string>

#include "base/status.h"
#include "machine/driver.h"

namespace caisson::machine::oci {

// Whether all of it is there.
bool HasMemory(const std::string& directory);

// Says that it is all there, of a machine of this spec, written by this version of runsc.
Result<void> SealMemory(const std::string& directory, const MachineSpec& spec,
                        const std::string& version, bool network);

// Whether a machine of this spec can go on from it. Fails with machine.invalid when memory and cpus
// are others, machine.unsupported when runsc or the network is another, machine.damaged.
Result<void> CheckMemory(const std::string& directory, const MachineSpec& spec,
                         const std::string& version, bool network);

// Shares the files with `to`, or copies them; they are never written again.
Result<void> ShareMemory(const std::string& from, const std::string& to);

}  // namespace caisson::machine::oci
