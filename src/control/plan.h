// SPDX-License-Identifier: Apache-2.0
// What a request for a sandbox comes to, before anything is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/sandboxes.h"

namespace caisson::control {

struct Sandboxes::Plan {
  Sandbox row;
  egress::Policy policy;
  std::string ingress_token;
  std::vector<std::string> networks;  // ids
  bool start_paused = false;
};

// Begins the image of a sandbox that is restored from a snapshot; the rest is the snapshot's id.
inline constexpr const char* kSnapshotPrefix = "snapshot:";
// Of the disk that a template is built on: sandboxes from it have no less.
inline constexpr std::int64_t kTemplateDiskMib = 4096;

// Beyond what a sandbox may still send: a packet that exceeds a cap is refused whole, and is no
// larger. So what was sent reaches the quota before anything is refused, and the row says so.
inline constexpr std::int64_t kCapMargin = 65'536;

// What its machine may send in all, by the machine's own counter.
machine::SentCap SentCapOf(const Sandbox& row);

// What the driver is told about a row.
machine::MachineSpec SpecOf(const Sandbox& row, const egress::Policy& policy,
                            const std::vector<std::string>& networks, std::uint64_t pids);

// The Status of a driver as that of the control plane: full stays full, everything else is
// control.machine with the driver's words.
Status OfDriver(const Status& status, const std::string& what);

}  // namespace caisson::control
