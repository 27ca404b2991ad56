// SPDX-License-Identifier: Apache-2.0
// The walls of one call, put up by the call itself in the namespaces that it was cloned into.
#pragma once

#include <stdint.h>

#include "isolate/native/wire.h"

namespace caisson::isolate::native {

// In jail::Wall's order; walls.cc of the supervisor's side asserts that.
enum class CallWall : uint32_t {
  kUserNamespace = 0,
  kPidNamespace = 1,
  kMountNamespace = 2,
  kNetworkNamespace = 3,
  kIpcNamespace = 4,
  kUtsNamespace = 5,
  kCgroupNamespace = 6,
  kRoot = 7,
  kCleanStart = 8,
  kNoNewPrivileges = 9,
  kCapabilities = 10,
  kUnprivilegedUser = 11,
  kResourceLimits = 12,
  kLandlock = 13,
  kSeccomp = 14,
};

// Where the call's socket stands until the walls are up.
inline constexpr int kSetUpSocketFd = kChannelFd + 1;

struct Failure {
  CallWall wall;
  int error;  // 0: nothing failed
  const char* step;
};

bool LeftOut(const ServeOptions& options, CallWall wall);
uint64_t NamespaceFlags(const ServeOptions& options);

// Sizes of this process in bytes, as the kernel counts them for limits.
struct Sizes {
  uint64_t address;
  uint64_t data;  // private writable memory
};

// What does not depend on the script: id maps, private mounts, a procfs of its own. Takes `sizes`
// on the way, as afterwards /proc may be empty.
Failure PrepareNamespaces(const ServeOptions& options, uint32_t outer_user, uint32_t outer_group,
                          Sizes& sizes);
// Moves the request's descriptors to their places, `socket` to kSetUpSocketFd, and closes all
// others.
Failure PlaceDescriptors(const ServeOptions& options, const int* fds, int socket);
// A /tmp of the script's, limits, capabilities, Landlock. After PlaceDescriptors, whose places the
// limits no longer allow.
Failure PutUpWalls(const ServeOptions& options, const CallRequest& request, const Sizes& sizes);
// The last: from then on only the filter's calls work.
Failure LoadFilter(const ServeOptions& options);

}  // namespace caisson::isolate::native
