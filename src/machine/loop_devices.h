// SPDX-License-Identifier: Apache-2.0
// The loop devices that machines' disks are mounted from. Needs root. Paths are absolute and
// without links.
#pragma once

#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine {

struct Loop {
  std::string device;  // "/dev/loop7"
  os::UniqueFd fd;     // the device goes when this is closed and nothing is mounted from it
};

// The device that has the file, by whomever it was attached; empty when there is none.
std::string FindLoop(const std::string& file);

// A device of its own for a file that has none.
Result<Loop> AttachLoop(const std::string& file);

// Of a file that has grown.
Result<void> RereadSize(int device);

// Detaches the loop devices of files below `directory` whose file is gone, which only somebody who
// was killed in between leaves.
void DetachStrays(const std::string& directory);

}  // namespace caisson::machine
