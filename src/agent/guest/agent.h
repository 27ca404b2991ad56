// SPDX-License-Identifier: Apache-2.0
// The parts of the running agent, put together.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/guest/child.h"
#include "agent/guest/host_connection.h"
#include "agent/guest/loop.h"
#include "agent/guest/processes.h"
#include "agent/guest/spawner.h"
#include "agent/guest/watch.h"
#include "os/fd.h"

namespace caisson::agent::guest {

class Entrance;

struct Options {
  int listener = 3;
  std::string listen_path;  // not empty: in place of `listener`, a socket of this name
  // Not empty: in place of either, a virtual serial port with channels (agent/channels.h); the
  // agent then has the whole computer (guest/computer.h).
  std::string port;
  // Likewise: a vsock port on which the host connects (host_streams.h), or a socket that listens
  // for such connections already.
  std::optional<std::uint32_t> vsock_port;
  int stream_listener = -1;
  bool has_computer() const { return !port.empty() || vsock_port || stream_listener >= 0; }
  std::vector<int> cgroup_procs;
  std::uint64_t command_processes = 0;  // of one user; 0: no limit of ours
  std::uint16_t self_port = 1029;       // 0: any that is free
};

// What the machine is busy with, for whoever watches.
struct Counts {
  std::uint32_t commands = 0;
  std::uint32_t streams = 0;
};

struct Agent {
  Agent(const Options& options, std::uint64_t open_files);

  // Takes the connection off the list and destroys it after the present callback.
  void Forget(HostConnection* connection);
  // The same for anything else that lives on its own.
  void Keep(std::unique_ptr<Disposable> object) { others.push_back(std::move(object)); }
  void Forget(Disposable* object);
  Activity Measure() const;
  // A virtual machine is sealed with every greeting of its host, and open once it is renewed.
  void Seal();
  void Open();
  // Names of its own: copies of one machine go on with other boots and ids of processes.
  void BeginLife();

  Loop loop;
  Spawner spawner;
  ChildTable children;
  ProcessTable processes;
  Watchers watchers;
  Counts counts;
  std::string boot_id;
  std::uint16_t self_port = 0;
  Entrance* entrance = nullptr;  // null: the host comes by a stream of channels
  const bool is_computer;
  bool sealed = false;
  bool has_disk = false;                // of a virtual machine: it is mounted
  std::array<char, 128u << 10> buffer;  // for the length of one call
  std::list<std::unique_ptr<HostConnection>> connections;
  std::list<std::unique_ptr<Disposable>> others;
};

// Counts one up while it lives.
class Counted {
 public:
  Counted(Agent& agent, std::uint32_t Counts::* count) : agent_(agent), count_(count) {
    ++(agent_.counts.*count_);
    agent_.watchers.NoteActivity();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    --(agent_.counts.*count_);
    agent_.watchers.NoteActivity();
  }

 private:
  Agent& agent_;
  std::uint32_t Counts::* count_;
};

// Runs until the process is killed; returns only when it cannot begin, with what to tell.
std::string RunAgent(const Options& options);

}  // namespace caisson::agent::guest
