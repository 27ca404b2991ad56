// SPDX-License-Identifier: Apache-2.0
// What the agent of a virtual machine does to the computer that it is alone in charge of. A copy of
// a machine runs on in the middle of what the first one did: nobody is served, and its commands
// stand still, until it has been renewed.
#pragma once

#include "agent/frames.h"
#include "agent/guest/failure.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

// Where caisson-guest-init has made the cgroup that commands run in, and mounted the image.
inline constexpr const char* kCommandsGroup = "/sys/fs/cgroup/commands";
inline constexpr const char* kImagePlace = "/image";
inline constexpr const char* kDiskDevice = "/dev/vdb";
inline constexpr const char* kModuleLoader = "/proc/sys/kernel/modprobe";
// Where MountDisk mounts the machine's disk for ourselves.
inline constexpr const char* kDiskPlace = "/run/caisson/disk";

// The disk, once it has this size, becomes the upper layer of the root file system of all
// processes. Once in a machine's life, before it is renewed for the first time (disk_root.cc).
Attempt<void> MountDisk(const MountDiskRequest& request);

// Name, machine id and the files that tell of them; what cannot be written is the guest's affair.
Attempt<void> Identify(const IdentifyRequest& request);
// New entropy, clock, identity, network address and limits; then commands go on.
Attempt<void> Renew(const RenewRequest& request);
// Commands stand still, and what was written is on the disk.
Attempt<void> Quiesce();
Attempt<void> Thaw(const ThawRequest& request);
// The file system of the disk, which is larger by now.
Attempt<void> GrowDisk(const GrowDiskRequest& request);

}  // namespace caisson::agent::guest
