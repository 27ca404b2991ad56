// SPDX-License-Identifier: Apache-2.0
// The parts of the running agent, put together.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/guest/child.h"
#include "agent/guest/host_connection.h"
#include "agent/guest/loop.h"
#include "agent/guest/spawner.h"
#include "os/fd.h"

namespace caisson::agent::guest {

struct Options {
  int listener = 3;
  std::vector<int> cgroup_procs;
  std::uint16_t self_port = 1029;  // 0: any that is free
};

// What the machine is busy with, for whoever watches.
struct Counts {
  std::uint32_t commands = 0;
  std::uint32_t streams = 0;
};

struct Agent {
  Agent(const Options& options, std::uint64_t open_files)
      : spawner(options.cgroup_procs, open_files), children(loop, spawner) {}

  // Takes the connection off the list and destroys it after the present callback.
  void Forget(HostConnection* connection);

  Loop loop;
  Spawner spawner;
  ChildTable children;
  Counts counts;
  std::string boot_id;
  std::uint16_t self_port = 0;
  std::list<std::unique_ptr<HostConnection>> connections;
};

// Counts one up while it lives.
class Counted {
 public:
  explicit Counted(std::uint32_t& count) : count_(count) { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count_; }

 private:
  std::uint32_t& count_;
};

// Runs until the process is killed; returns only when it cannot begin, with what to tell.
std::string RunAgent(const Options& options);

}  // namespace caisson::agent::guest
