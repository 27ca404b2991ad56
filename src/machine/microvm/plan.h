// SPDX-License-Identifier: Apache-2.0
// What the helper tells the process that it puts beside each virtual machine (caisson-vmm), and
// what they say to each other afterwards. The plan is JSON from the helper, which is trusted. The
// answers are of one fixed size: the process has seen what comes from inside the machine, so its
// words are looked at and not believed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace caisson::machine::microvm {

// Descriptors that caisson-vmm is started with.
inline constexpr int kPlanFd = 3;     // the plan, to the end
inline constexpr int kReportFd = 4;   // where it tells how its start went
inline constexpr int kControlFd = 5;  // a listening socket, for the helper
inline constexpr int kAgentFd = 6;    // a listening socket, for connections to the agent
inline constexpr int kTapFd = 7;      // the machine's network; /dev/null without one
inline constexpr int kFirstTaskFd = 8;

enum class Accelerator : std::uint8_t { kTcg, kKvm };
std::string_view NameOf(Accelerator accelerator);

// Paths are the host's until the walls are up; then those of kInside….
struct Plan {
  std::uint32_t uid = 0;  // and gid
  int tasks = 0;          // how many cgroup files there are from kFirstTaskFd on
  std::string scratch;    // an empty directory, to mount on
  std::string qemu;       // program
  std::string preload;    // library that makes shared memory files private
  std::string boot;       // directory with vmlinuz and initrd
  std::string image;      // EROFS file
  std::string own;        // directory: disk.img, and what is saved
  std::string base;       // directory with memory and state to go on from; empty: boot
  Accelerator accelerator = Accelerator::kTcg;
  std::uint64_t ram_bytes = 0;
  unsigned processors = 1;
  std::uint64_t tsc_khz = 0;
  bool shares_memory = false;  // a template: its memory is a file that others copy
  bool mounts_disk = false;    // it has booted, or goes on from a template: the disk is new to it
  bool waits = false;          // for its name: it stands still then, until kBegin
  bool trial = false;          // no machine: whether the kernel comes up, with no disk
  bool network = false;
  std::uint32_t boot_patience_ms = 0;  // until the agent answers
  // For the agent (agent/messages.h, RenewRequest); host_name empty: goes on as who it was.
  std::string host_name, machine_id, hosts_file, resolv_file;
  std::string address, mac, gateway, gateway_mac;
  std::uint64_t memory_bytes = 0, pids = 0;
  std::uint64_t disk_bytes = 0;      // a smaller disk grows once the agent answers
  std::uint64_t max_file_bytes = 0;  // no file that is written may be larger
  // For Firecracker alone; it gets no tap, but enters a namespace that has one.
  std::string firecracker, jailer;  // programs
  std::string jail_name;            // [a-zA-Z0-9-]{1,64}
  std::string network_namespace;    // path; empty: one with nothing in it
};

json::Value ToJson(const Plan& plan);
Result<Plan> PlanFromJson(const json::Value& value);
// What this process was given as kPlanFd, which is closed then.
Result<Plan> ReadPlan();

inline constexpr const char* kInsideBoot = "/boot";
inline constexpr const char* kInsideImage = "/image.erofs";
inline constexpr const char* kInsideOwn = "/own";
inline constexpr const char* kInsideBase = "/base";
inline constexpr const char* kInsidePreload = "/preload.so";
inline constexpr const char* kConsoleFile = "/run/console";

// --- its start ---

struct Report {
  std::int32_t pid = 0;    // as the helper sees it; 0: it failed
  std::int32_t error = 0;  // errno
  char step[120] = {};     // that failed
};

// --- requests, one after the other ---

inline constexpr std::size_t kMaxRequestBytes = 256u << 10;  // with the plan of kBegin
enum class Operation : std::uint32_t {
  kAwaitRunning = 1,  // until its processors run
  kStop,              // commands stand still, the disk is written, its processors stop
  kGoOn,
  kSave,  // writes memory and state into kInsideOwn; the machine is stopped afterwards as before
  kGrow,  // the disk file has this size now
  kAwaitAgent,  // until the agent has been renewed
  kBegin,       // who waited is a machine now: as of the plan that comes with the request
  kAwaitTrial,  // until the kernel of a trial has come to our first program, or has ended
};
struct Request {
  Operation operation = Operation::kAwaitRunning;
  // Which one the answer is to. What another helper asked for, or this one gave up on, may be under
  // way still; a later kStop or kGoOn is what counts.
  std::uint32_t sequence = 0;
  std::uint64_t argument = 0;
};
enum class Outcome : std::uint32_t {
  kDone,
  kFailed,
  kFull,
  kDamaged,
  kAgentSilent,
  kEnded,
  kUnquiet,  // it has stopped, but commands were at work, or the disk was not written
};
struct Reply {
  Outcome outcome = Outcome::kDone;
  std::uint32_t sequence = 0;
  std::uint64_t nanoseconds = 0;  // kSave: how long it stood still
  char text[240] = {};
};

}  // namespace caisson::machine::microvm
