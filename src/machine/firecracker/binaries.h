// SPDX-License-Identifier: Apache-2.0
// The programs of Firecracker that this host has: the monitor and the jailer that starts it, which
// are of one version, and of one whose API is known here.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::machine::firecracker {

struct Version {
  unsigned major = 0, minor = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
};
std::string ToText(const Version& version);  // "1.10.1"

// From the first line of `--version`: "Firecracker v1.10.1", "Jailer v1.10.1"; a version of
// somebody's own ("v1.10.1-dirty") is none. Fails with machine.unavailable.
Result<Version> ParseVersion(std::string_view program, std::string_view output);

// All that is used (ACPI tables for the guest, a generation id, full snapshots) is in these; the
// API was read in src/firecracker/swagger/firecracker.yaml of its repository, as of 1.17.0-dev.
inline constexpr Version kLeastVersion{1, 10, 0};
inline constexpr Version kBelowVersion{1, 17, 0};

struct Binaries {
  std::string firecracker, jailer;  // absolute, without links
  Version version;
};
// Names are looked up in PATH; empty ones are "firecracker" and "jailer". Fails with
// machine.unavailable, which says what is missing and what to do.
Result<Binaries> FindBinaries(const std::string& firecracker, const std::string& jailer);

}  // namespace caisson::machine::firecracker
