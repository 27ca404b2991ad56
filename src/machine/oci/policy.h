// SPDX-License-Identifier: Apache-2.0
// What a container may do, and the config.json (OCI runtime specification) that says so. By default
// nothing: no network but a loopback, a read-only root, a small /tmp without exec, another user, no
// capability, no new privileges, namespaces of its own, a seccomp allow list, limits on memory,
// processors and processes. Pure: nothing here looks at the host.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "os/seccomp.h"

namespace caisson::machine::oci {

enum class Wall : std::uint8_t {
  kPidNamespace,
  kNetworkNamespace,
  kIpcNamespace,
  kUtsNamespace,
  kCgroupNamespace,
  kReadOnlyRoot,
  kNoExecTmp,
  kUser,
  kCapabilities,
  kNoNewPrivileges,
  kSeccomp,
  kMaskedPaths,
  kMemory,
  kPids,
};
inline constexpr std::size_t kWallCount = 14;
std::string_view NameOf(Wall wall);

// Leaves walls out. For tests that show what each is good for; no configuration reaches it.
class DangerouslyWithout {
 public:
  constexpr DangerouslyWithout() = default;
  constexpr explicit DangerouslyWithout(std::initializer_list<Wall> walls) {
    for (Wall wall : walls) Add(wall);
  }
  constexpr void Add(Wall wall) { bits_ |= 1u << static_cast<unsigned>(wall); }
  constexpr bool Has(Wall wall) const { return (bits_ >> static_cast<unsigned>(wall) & 1) != 0; }

 private:
  std::uint32_t bits_ = 0;
};

inline constexpr unsigned kUser = 1001;  // and group

struct ContainerPolicy {
  std::string root;                    // directory of the root file system; bundles only
  std::vector<std::string> arguments;  // the program first; looked up in PATH unless absolute
  std::vector<std::string> environment = {"HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin",
                                          "TMPDIR=/tmp", "LANG=C.UTF-8"};
  std::string hostname = "caisson";
  std::string cgroup;  // where the runtime makes the container's own; empty: its choice
  std::uint64_t memory_bytes = 512ull << 20;  // swap is not given in addition
  double cpus = 1;
  std::uint64_t pids = 128;  // threads count
  std::uint64_t tmp_bytes = 64ull << 20;
  std::uint64_t tmp_inodes = 16'384;
  std::span<const os::SyscallRule> syscalls;  // what no rule allows fails with EPERM
  DangerouslyWithout without;
};

// linux.seccomp of the specification, which Docker and Podman read from a file, too.
json::Value SeccompProfile(std::span<const os::SyscallRule> rules);

json::Value RuntimeConfig(const ContainerPolicy& policy);

}  // namespace caisson::machine::oci
