// SPDX-License-Identifier: Apache-2.0
// What the first process of a machine does to itself before it becomes the agent: it takes its
// root, goes behind every wall, and executes the agent. The other side is machine/boot.h. Runs
// between clone and exec of programs that have threads, and in caisson-container-init, which has no
// libraries: it makes only async-signal-safe calls and allocates nothing.
#pragma once

#include <linux/filter.h>
#include <sched.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace caisson::machine::boot {

// The agent finds its listening socket at this descriptor, and the files by which commands get into
// their cgroups at the next ones.
inline constexpr int kListenFd = 3;

// Those that the process is cloned with; the network's it has of who clones it.
inline constexpr std::uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

inline constexpr std::size_t kMaxIdentity = 32u << 10;
inline constexpr std::size_t kMaxDescriptors = 24;

// What the child tells: a step that failed, or that it is ready (error 0).
struct Report {
  int error = 0;
  char step[60] = {};
};

// All that the process needs.
struct ChildPlan {
  std::array<int, kMaxDescriptors> fds{};  // in the order of their numbers inside, from kListenFd
  int count = 0;
  int inherited = 0;                            // so many of them the agent keeps
  int program = 0, control = 0, landlock = -1;  // numbers inside
  int first_task = 0, last_task = 0;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  sock_fprog filter{};
};

// What caisson-container-init is told in one message, so that it clones the process: this, the
// instructions of the filter, and words that end with 0: arguments, then variables. Descriptors go
// along: the plan's in their order without the control socket, on which this comes; the network's
// namespace; the group of version 2, if there is one.
struct Handover {
  int count = 0, inherited = 0, program = 0, control = 0, landlock = -1;
  int first_task = 0, last_task = 0;  // all as in ChildPlan
  int arguments = 0, variables = 0;   // how many
  int instructions = 0;
  int has_group = 0;
};
inline constexpr std::size_t kMaxHandover = 160u << 10;
inline constexpr std::size_t kMaxWords = 32;
// Where the program finds the socket on which it connects to the helper, of SOCK_SEQPACKET.
inline constexpr const char* kHandoverPlace = "/run/caisson";  // a directory
inline constexpr const char* kHandoverName = "start.sock";

// In the process that was cloned with kNamespaces. Executes the agent, or tells of a step that
// failed and ends.
[[noreturn]] void RunChild(const ChildPlan& plan);

}  // namespace caisson::machine::boot
