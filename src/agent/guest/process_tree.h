// SPDX-License-Identifier: Apache-2.0
// The processes of the machine, as /proc has them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace caisson::agent::guest {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  std::uint64_t start = 0;  // tells a process from a later one with its pid
};

// All that live, zombies left out. Empty when /proc cannot be read.
std::vector<ProcessEntry> ListProcesses();
// Those of `all` below `root`, without it.
std::vector<ProcessEntry> Descendants(const std::vector<ProcessEntry>& all, pid_t root);
// Those of `all` that came to this process because what watched over them was killed, without what
// is below them. Only the commands' own processes make sessions, so that what this process started
// itself is told apart by being in its own.
std::vector<ProcessEntry> Orphans(const std::vector<ProcessEntry>& all);
// Reaches this process and no later one with its pid.
void SendSignal(const ProcessEntry& process, int signal);
// Stops what `choose` takes of all processes until it takes nothing new, then kills it.
using Choose = std::function<std::vector<ProcessEntry>(const std::vector<ProcessEntry>& all)>;
void KillAll(const Choose& choose);
// The command line; empty when it cannot be read.
std::vector<std::string> CommandLine(pid_t pid);

}  // namespace caisson::agent::guest
