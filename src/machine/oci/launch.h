// SPDX-License-Identifier: Apache-2.0
// Runs a container runtime's program until it has left a container running, in a mount namespace
// that only it and the container see: what is attached there for them leaves no trace on the host,
// whoever is killed. The program is in the machine's cgroups before its first instruction, so that
// nothing of it escapes them.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine::oci {

// Below Launch::place.
struct Attachment {
  int mount = -1;  // detached; attached by this
  std::string path;
  bool is_file = false;
};

struct Launch {
  std::vector<std::string> arguments;  // an absolute path first
  // A directory of this host that only the program sees another way: with the attachments, for
  // every user of the container to pass through. See FindPlace.
  std::string place;
  std::vector<Attachment> attachments;
  // Descriptors 3, 4, … of the program.
  std::vector<int> descriptors;
  int group = -1;                         // of version 2, a directory; -1: none
  std::span<const os::UniqueFd> tasks;    // files by which it enters the others, in this order
  std::span<const os::UniqueFd> further;  // the same, later
  // Not empty: runs in this network namespace, with /proc/sys/net/core empty. runsc takes a
  // namespace that has files there for the host's, as kernels since 6.9 show them in every one.
  std::string network;
  std::string messages;  // a file for what the program, and the container, print
  std::chrono::milliseconds patience{30'000};
};

// A directory that every host has and that none of `needed`, absolute paths, is in. Fails with
// oci.unavailable.
Result<std::string> FindPlace(const std::vector<std::string>& needed);

// Fails with oci.failed, and the program's last words.
Result<void> Run(const Launch& launch);

}  // namespace caisson::machine::oci
