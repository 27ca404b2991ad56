// SPDX-License-Identifier: Apache-2.0
// The worker's side of streaming runs. Nothing here may need a system call that the seal's list
// lacks once it is on.
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "isolate/large_stack.h"
#include "isolate/worker/script_frame.h"
#include "isolate/worker/script_worker.h"
#include "jail/seal.h"
#include "jail/spawn.h"
#include "jail/syscalls.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

constexpr int kBadCommand = 2;
constexpr int kNotReady = 3;
constexpr int kBadRequest = 4;

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

// Anything that comes while a run is under way is its cancellation; so is the end of the channel.
bool IsCancelled() {
  char byte = 0;
  const ssize_t n = ::recv(jail::kChannelFd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

class ChannelSink final : public ScriptSink {
 public:
  bool Take(const ScriptMessage& message) override {
    const OutgoingFrame frame = EncodeScriptMessage(message);
    return SendAll(frame.head, frame.rest);
  }
};

class Server {
 public:
  explicit Server(ScriptExecutor& executor) : executor_(executor) {}

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
    // For a run that had ended before it was read.
    if (frame.type == FrameType::kCancelScript) return frame.body.empty();
    if (frame.type != FrameType::kScriptJob) return false;
    const auto job = DecodeScriptJob(frame.body);
    if (!job) return false;
    ChannelSink sink;
    const auto outcome = executor_.Execute(*job, sink, IsCancelled);
    const bool sent =
        SendAll(outcome ? EncodeScriptEnd(*outcome) : EncodeScriptStatus(outcome.error()));
    executor_.Recover();
    return sent;
  }

  ScriptExecutor& executor_;
  FrameReader reader_;
};

// Everything up to and with the seal.
Result<std::unique_ptr<ScriptExecutor>> Prepare(const jail::SealTicket& ticket,
                                                const ScriptExecutorFactory& factory,
                                                ReadyMessage& ready) {
  CAISSON_ASSIGN(ready.walls, jail::Harden(ticket));
  CAISSON_ASSIGN(ScriptWorkerParts parts, factory());
  CAISSON_ASSIGN(ready.describe, json::Write(parts.executor->Describe()));
  jail::SealOptions options{.syscalls = jail::WorkerSyscalls(jail::kChannelFd)};
  options.syscalls.insert(options.syscalls.end(), parts.syscalls.begin(), parts.syscalls.end());
  CAISSON_ASSIGN(const std::vector<jail::WallReport> walls, jail::Seal(ticket, options));
  ready.walls.insert(ready.walls.end(), walls.begin(), walls.end());
  return std::move(parts.executor);
}

}  // namespace

int ScriptWorkerMain(const WorkerCommand& command, const ScriptExecutorFactory& factory) {
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
  // Not destroyed: a sealed process ends, it does not tidy up.
  ScriptExecutor& server = *executor->release();
  int code = kNotReady;
  const auto served = OnLargeStack(server.stack_bytes(), [&] {
    code = SendAll(EncodeReady(ready)) ? Server(server).Serve() : 0;
  });
  if (!served) SendAll(EncodeFailed(served.error()));
  ::_exit(code);
}

}  // namespace caisson::isolate
