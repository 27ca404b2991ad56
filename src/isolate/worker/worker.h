// SPDX-License-Identifier: Apache-2.0
// Isolate calls in other processes: WorkerRuntime keeps jailed worker processes of one tenant, each
// of which hosts an Executor and serves one call after another; a worker that dies takes only the
// call with it that it was at. WorkerMain is the worker's side. Workers are not trusted once they
// are sealed: whatever comes from one is bounded and checked.
//
// Thread-safe. The runtime owns one thread per worker, which starts, watches and buries it; a
// thread that waits in Call reads its own reply.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isolate/executor.h"
#include "isolate/runtime.h"
#include "jail/walls.h"
#include "json/value.h"
#include "os/cgroup.h"

namespace caisson::isolate {

// First argument of the hidden subcommand: when argv[1] is this, main must call WorkerMain at once,
// before it parses anything or starts a thread.
inline constexpr std::string_view kWorkerCommand = "__worker";

struct WorkerOptions {
  // The program that calls WorkerMain, and its arguments after kWorkerCommand (for instance where
  // the artifacts are). Nothing else reaches a worker: it has no environment.
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;

  std::size_t workers = 0;  // at most; 0: as many as this process may use cores
  // Calls that a worker has at a time; it serves one and has the next ones at hand.
  std::size_t calls_in_flight = 4;
  std::chrono::milliseconds start_timeout{60'000};
  // A worker that has not answered this long after its call's wall clock limit is killed.
  std::chrono::milliseconds grace{2'000};

  // Of one worker. The memory must hold an instance at its limit, the engine and a call's texts; a
  // call runs on one thread, and the engine's ticker needs a little beside it.
  os::CgroupLimits cgroup{.memory_bytes = 1u << 30, .cpus = 1.25, .pids = 64};
  // What workers that start later are told beside their arguments, from what one says of itself
  // before it has run anything foreign. Only for script workers.
  std::function<std::vector<std::string>(const json::Value& describe)> learn;
  std::optional<jail::AllowUnjailed> allow_unjailed;  // for --allow-unjailed
  jail::DangerouslyLeaveOut leave_out;                // for tests
};

struct WorkerStats {
  std::size_t running = 0;           // worker processes now
  std::uint64_t started = 0;         // since the runtime was made
  std::uint64_t killed = 0;          // ended by us or by themselves, while the runtime was in use
  std::uint64_t resident_bytes = 0;  // of all that run
  std::vector<int> process_ids;      // of all that run
};

class WorkerRuntime final : public Runtime {
 public:
  using Callback = std::function<void(Result<EncodedOutcome>)>;

  // Starts no worker yet: one starts with the first call that needs it. Where cgroups can be made,
  // a process starts that removes ours should this process be killed (os/cgroup_reaper.h).
  static Result<std::unique_ptr<WorkerRuntime>> Create(WorkerOptions options);
  // Kills all workers. Calls that wait get isolate.worker_lost.
  ~WorkerRuntime() override;

  // Fails with jail.unavailable (a mandatory wall is missing on this host), whatever the worker's
  // factory failed with, isolate.worker_lost (workers die before they are ready, repeatedly). A
  // worker that dies during the call gives Fault::kKilled, one that outlives its wall clock limit
  // by the grace Fault::kWallClock.
  Result<Outcome> Call(const Job& job) override;
  // The same on JSON text.
  Result<EncodedOutcome> CallEncoded(EncodedJob job);
  // Does not block. `callback` runs once, on a thread of the runtime or of another caller that is
  // waiting for its own call: it must be quick, and must not call the runtime's Call. Submit is
  // fine.
  void Submit(EncodedJob job, Callback callback);

  // What the executor in the worker says, and the walls; starts a worker when there is none.
  json::Value Describe() const override;
  // The walls that stand around the workers; starts a worker when there is none.
  Result<std::vector<jail::WallReport>> Walls() const;
  // Starts a worker now, so that the first call need not wait for it.
  Result<void> Warm() const;

  WorkerStats Stats() const;

  // For a caller that cannot wait for its calls: kills all workers and returns when they have gone.
  // Calls that wait, and later ones, fail with isolate.worker_lost. May be called at any time,
  // once.
  void Shutdown();

 private:
  class Pool;
  explicit WorkerRuntime(std::unique_ptr<Pool> pool);
  std::unique_ptr<Pool> pool_;
};

using ExecutorFactory = std::function<Result<std::unique_ptr<Executor>>()>;

// Parses the arguments of a worker: those of WorkerOptions::arguments come back as they were, for
// the program to make its factory of. Fails when this is no worker's command line.
struct WorkerCommand {
  std::vector<std::string> arguments;
  std::string ticket;
};
Result<WorkerCommand> ParseWorkerCommand(int argc, char** argv);

// The whole life of a worker process: hardens itself, makes the executor by `factory` (which may
// still read files), seals itself, says that it is ready, serves calls until the channel closes.
// Returns the exit code of the process. The executor may start threads in the factory and later;
// after the seal it can open nothing and map no code.
int WorkerMain(const WorkerCommand& command, const ExecutorFactory& factory);

}  // namespace caisson::isolate
