// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <utility>

#include "errors/isolate.h"
#include "isolate/worker/frame.h"
#include "json/reader.h"
#include "os/syscall_error.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kChannelBytes = 1u << 20;

std::unexpected<Status> Lost(const std::string& what) {
  return Fail(errors::kIsolateWorkerLost, "The isolate worker could not be started: " + what +
                                              ". See what it wrote to stderr; "
                                              "`caisson doctor` checks the host.");
}

// Returns once the channel has something to read.
Result<void> AwaitInput(const WorkerProcess& worker, const os::UniqueFd& stop,
                        std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    std::array<pollfd, 2> events = {pollfd{worker.channel.get(), POLLIN, 0},
                                    pollfd{stop.get(), POLLIN, 0}};
    const int ready = left.count() <= 0
                          ? 0
                          : ::poll(events.data(), events.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Lost("it was not ready in time");
    if (events[1].revents != 0) return Lost("the runtime was shut down meanwhile");
    return {};
  }
}

// The first frame of the worker.
Result<ReadyMessage> AwaitReady(WorkerProcess& worker, std::chrono::milliseconds timeout,
                                const os::UniqueFd& stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  FrameReader reader;
  FrameReader::Frame frame{};
  for (;;) {
    const FrameReader::State state = reader.Next(kMaxReadyBytes, frame);
    if (state == FrameReader::State::kViolation) return Lost("it does not speak the protocol");
    if (state == FrameReader::State::kFrame) break;
    CAISSON_TRY(AwaitInput(worker, stop, deadline));
    const FrameReader::Room room = reader.Prepare();
    const ssize_t n = ::recv(worker.channel.get(), room.data, room.size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const auto status = worker.jailed.process.Wait(std::chrono::seconds(5));
      return Lost("it " + (status ? os::ToText(*status) : "closed its channel"));
    }
    reader.Commit(static_cast<std::size_t>(n));
  }
  if (frame.type == FrameType::kFailed) {
    if (auto status = DecodeFailed(frame.body)) return Fail(*std::move(status));
  }
  if (frame.type == FrameType::kReady) {
    if (auto ready = DecodeReady(frame.body)) return *std::move(ready);
  }
  return Lost("it does not speak the protocol");
}

// What both halves of the jail reported, in the order of the walls, with our own words on each.
std::vector<jail::WallReport> MergeWalls(const std::vector<jail::WallReport>& outer,
                                         const std::vector<jail::WallReport>& inner) {
  std::vector<jail::WallReport> merged;
  for (const jail::WallInfo& info : jail::AllWalls()) {
    jail::WallReport report = jail::Missing(info.wall, "the worker did not report it");
    for (const auto* half : {&outer, &inner}) {
      for (const jail::WallReport& said : *half) {
        if (said.name != info.name) continue;
        report = said.stands ? jail::Standing(info.wall, said.reason)
                             : jail::Missing(info.wall, said.reason);
      }
    }
    merged.push_back(std::move(report));
  }
  return merged;
}

}  // namespace

Result<WorkerProcess> StartWorker(const WorkerOptions& options, const os::UniqueFd& stop) {
  WorkerProcess worker;
  CAISSON_ASSIGN(os::FdPair pair, os::MakeSocketPair(kChannelBytes));
  jail::SpawnOptions spawn{.executable = options.executable,
                           .arguments = {"caisson", std::string(kWorkerCommand)},
                           .channel = pair.second.get(),
                           .limits = options.cgroup,
                           .allow_unjailed = options.allow_unjailed,
                           .leave_out = options.leave_out};
  spawn.arguments.insert(spawn.arguments.end(), options.arguments.begin(), options.arguments.end());
  worker.channel = std::move(pair.first);
  CAISSON_ASSIGN(worker.jailed, jail::Spawn(spawn));
  pair.second.Reset();
  CAISSON_ASSIGN(const ReadyMessage ready, AwaitReady(worker, options.start_timeout, stop));
  worker.walls = MergeWalls(worker.jailed.walls, ready.walls);
  if (auto describe = json::Read(ready.describe)) worker.describe = *std::move(describe);
  return worker;
}

std::uint64_t ResidentBytes(const WorkerProcess& worker) {
  const std::string path = "/proc/" + std::to_string(worker.jailed.process.pid()) + "/statm";
  const auto text = os::ReadSmallFile(path);
  if (!text) return 0;
  std::istringstream fields(*text);
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  fields >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace caisson::isolate
