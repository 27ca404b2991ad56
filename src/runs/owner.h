// SPDX-License-Identifier: Apache-2.0
// Who runs a run: a process, and which of its attempts. Written into the store, so that another
// process can tell whether it still lives.
#pragma once

#include <string>
#include <string_view>

namespace caisson::runs {

// "<boot id> <pid namespace> <pid> <start time> <attempt>" of this process; no two are equal.
std::string NewOwner();

enum class OwnerState : std::uint8_t {
  kAlive,
  kDead,     // it was a process of this boot and this pid namespace, and has ended
  kUnknown,  // of another host, boot or container: only its lease says something
};
OwnerState StateOf(std::string_view owner);

}  // namespace caisson::runs
