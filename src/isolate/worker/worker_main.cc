// SPDX-License-Identifier: Apache-2.0
// The worker's side: one thread that reads a request, executes it, writes the reply. Nothing here
// may need a system call that jail::WorkerSyscalls lacks once the seal is on.
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <utility>

#include "errors/internal.h"
#include "errors/wasm.h"
#include "isolate/worker/frame.h"
#include "isolate/worker/worker.h"
#include "jail/seal.h"
#include "jail/spawn.h"
#include "jail/syscalls.h"
#include "json/writer.h"
#include "os/rlimit.h"

namespace caisson::isolate {
namespace {

constexpr int kBadCommand = 2;
constexpr int kNotReady = 3;
constexpr int kBadRequest = 4;
constexpr std::size_t kKeptPayload = 1u << 20;

// False when the supervisor is gone.
bool SendAll(std::string_view head, std::string_view rest = {}) {
  while (!head.empty() || !rest.empty()) {
    iovec parts[2] = {{const_cast<char*>(head.data()), head.size()},
                      {const_cast<char*>(rest.data()), rest.size()}};
    const ssize_t n = ::writev(jail::kChannelFd, parts, 2);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    const auto sent = static_cast<std::size_t>(n);
    const std::size_t of_head = std::min(sent, head.size());
    head.remove_prefix(of_head);
    rest.remove_prefix(sent - of_head);
  }
  return true;
}

class Server {
 public:
  explicit Server(Executor& executor) : executor_(executor) {}

  // The exit code, once the channel has closed or has brought something that is no request.
  int Serve() {
    for (;;) {
      FrameReader::Frame frame{};
      switch (reader_.Next(kMaxFrameBytes, frame)) {
        case FrameReader::State::kViolation:
          return kBadRequest;
        case FrameReader::State::kFrame:
          if (!Handle(frame)) return kBadRequest;
          break;
        case FrameReader::State::kNeedMore:
          if (!ReadMore()) return 0;
          break;
      }
    }
  }

 private:
  bool ReadMore() {
    const FrameReader::Room room = reader_.Prepare();
    ssize_t n = 0;
    do {
      n = ::read(jail::kChannelFd, room.data, room.size);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    reader_.Commit(static_cast<std::size_t>(n));
    return true;
  }

  bool Handle(const FrameReader::Frame& frame) {
    switch (frame.type) {
      case FrameType::kSource: {
        const auto message = DecodeSource(frame.body);
        if (message) sources_[message->number] = message->text;
        return message.has_value();
      }
      case FrameType::kForgetSources:
        sources_.clear();
        return frame.body.empty();
      case FrameType::kCall: {
        const auto message = DecodeCall(frame.body);
        return message && Call(*message);
      }
      default:
        return false;
    }
  }

  bool Call(const CallMessage& message) {
    const auto source = sources_.find(message.source);
    if (source == sources_.end()) return false;
    job_.source = source->second;
    job_.payload = message.payload;
    job_.limits = message.limits;
    const Result<EncodedOutcome> result = executor_.Execute(job_);
    if (job_.payload.capacity() > kKeptPayload) job_.payload = std::string();
    const OutgoingFrame reply = EncodeReply(message.call, result);
    return SendAll(reply.head, reply.rest);
  }

  Executor& executor_;
  FrameReader reader_;
  std::unordered_map<std::uint32_t, std::string> sources_;
  EncodedJob job_;  // kept for its buffers
};

// Calls run on this thread: the engine's stack for the guest must fit into ours.
Result<void> EnsureStack() {
  constexpr std::uint64_t kWanted = 8u << 20;
  constexpr std::uint64_t kLeast = 4u << 20;
  CAISSON_ASSIGN(const std::uint64_t bytes, os::RaiseSoftLimit(RLIMIT_STACK, kWanted));
  if (bytes >= kLeast) return {};
  return Fail(errors::kWasmLimitTooLow, "An isolate worker needs a stack of " +
                                            std::to_string(kLeast >> 10) +
                                            " KiB, but RLIMIT_STACK (ulimit -Hs) allows " +
                                            std::to_string(bytes >> 10) + " KiB; raise the limit.");
}

// Everything up to and with the seal.
Result<std::unique_ptr<Executor>> Prepare(const jail::SealTicket& ticket,
                                          const ExecutorFactory& factory, ReadyMessage& ready) {
  CAISSON_TRY(EnsureStack());
  CAISSON_ASSIGN(ready.walls, jail::Harden(ticket));
  CAISSON_ASSIGN(std::unique_ptr<Executor> executor, factory());
  CAISSON_ASSIGN(ready.describe, json::Write(executor->Describe()));
  CAISSON_ASSIGN(const std::vector<jail::WallReport> walls,
                 jail::Seal(ticket, {.syscalls = jail::WorkerSyscalls(jail::kChannelFd)}));
  ready.walls.insert(ready.walls.end(), walls.begin(), walls.end());
  return executor;
}

}  // namespace

Result<WorkerCommand> ParseWorkerCommand(int argc, char** argv) {
  if (argc < 3 || argv[1] != kWorkerCommand) {
    return Fail(errors::kInternalFailed,
                "This is not the command line of a worker; Caisson starts its workers itself.");
  }
  WorkerCommand command;
  for (int i = 2; i + 1 < argc; ++i) command.arguments.emplace_back(argv[i]);
  command.ticket = argv[argc - 1];
  return command;
}

int WorkerMain(const WorkerCommand& command, const ExecutorFactory& factory) {
  const auto ticket = jail::SealTicket::FromText(command.ticket);
  if (!ticket) {
    std::fprintf(stderr, "caisson: %s\n", ticket.error().message.c_str());
    return kBadCommand;
  }
  std::signal(SIGPIPE, SIG_IGN);
  ReadyMessage ready;
  auto executor = Prepare(*ticket, factory, ready);
  if (!executor) {
    SendAll(EncodeFailed(executor.error()));
    return kNotReady;
  }
  if (!SendAll(EncodeReady(ready))) return 0;
  // Not destroyed: a sealed process ends, it does not tidy up.
  ::_exit(Server(*executor->release()).Serve());
}

}  // namespace caisson::isolate
