// SPDX-License-Identifier: Apache-2.0
#include "machine/helper/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "agent/client.h"
#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine::helper {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxIdle = 32;
constexpr milliseconds kEmulatedPatience{120'000};

Result<os::UniqueFd> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(errors::kMachineUnavailable,
                "the path of the helper's socket is too long: " + path);
  }
  path.copy(address.sun_path, path.size());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Fail(errors::kMachineUnavailable, "the helper does not answer at " + path + " (" +
                                                 os::ErrnoText(errno) +
                                                 "); start it with `caisson machined`");
  }
  return socket;
}

// Nothing is due on an idle connection: when something is there, it is its end.
bool IsStale(int socket) {
  pollfd event{socket, POLLIN, 0};
  return ::poll(&event, 1, 0) != 0;
}

// Whether doing it twice is as doing it once. A pause could be, but for who resumed in between.
bool CanRepeat(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
    case Operation::kFork:
    case Operation::kRestore:
    case Operation::kTakeSnapshot:
    case Operation::kResize:
      return false;
    default:
      return true;
  }
}

template <typename T, typename Convert>
Result<std::vector<T>> ListFrom(const json::Value& value, Convert convert) {
  if (!value.is_array()) return Fail(errors::kMachineProtocol, "a reply is no list");
  std::vector<T> list;
  for (const json::Value& item : value.as_array()) {
    CAISSON_ASSIGN(T converted, convert(item));
    list.push_back(std::move(converted));
  }
  return list;
}

}  // namespace

Result<std::unique_ptr<RemoteDriver>> RemoteDriver::Open(const Options& options) {
  std::unique_ptr<RemoteDriver> driver(new RemoteDriver(options));
  CAISSON_ASSIGN(const Answer answer, driver->Ask({.operation = Operation::kCapabilities}));
  CAISSON_ASSIGN(driver->capabilities_, CapabilitiesFromJson(answer.value));
  if (driver->capabilities_.emulated) {
    // One that boots does so by an emulated processor.
    driver->options_.agent_patience = std::max(driver->options_.agent_patience, kEmulatedPatience);
  }
  return driver;
}

Result<os::UniqueFd> RemoteDriver::TakeConnection() {
  {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      os::UniqueFd socket = std::move(idle_.back());
      idle_.pop_back();
      if (!IsStale(socket.get())) return socket;
    }
  }
  return ConnectTo(options_.socket);
}

Result<RemoteDriver::Answer> RemoteDriver::AskOnce(const std::string& text, bool& sent) {
  CAISSON_ASSIGN(os::UniqueFd socket, TakeConnection());
  sent = true;
  CAISSON_TRY(SendFrame(socket.get(), text));
  CAISSON_ASSIGN(std::optional<ReceivedFrame> frame, ReceiveFrame(socket.get(), kMaxReplyBytes));
  if (!frame) {
    return Fail(errors::kMachineUnavailable, "the helper ended before it answered");
  }
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(socket));
  }
  auto value = DecodeReply(frame->text);
  if (!value) return Answer{.value = {}, .fd = {}, .failure = std::move(value).error()};
  return Answer{.value = *std::move(value), .fd = std::move(frame->fd), .failure = {}};
}

// A failure of the way to the helper is told apart from what the helper says.
Result<RemoteDriver::Answer> RemoteDriver::Ask(Request request) {
  request.driver = options_.driver;
  CAISSON_ASSIGN(const std::string text, Encode(request));
  const auto deadline = Clock::now() + options_.helper_patience;
  for (milliseconds pause{10};; pause = std::min(pause * 2, milliseconds(200))) {
    bool sent = false;
    auto answer = AskOnce(text, sent);
    if (answer) {
      if (answer->failure) return Fail(*std::move(answer->failure));
      return answer;
    }
    if ((sent && !CanRepeat(request.operation)) || Clock::now() + pause > deadline) {
      return Fail(errors::kMachineUnavailable, answer.error().message);
    }
    std::this_thread::sleep_for(pause);
  }
}

Result<void> RemoteDriver::AwaitAgent(const std::string& id, os::UniqueFd connection) {
  if (!connection.valid()) {
    CAISSON_ASSIGN(connection, Connect(id));
  }
  auto answered = agent::Ping(std::move(connection), options_.agent_patience);
  if (!answered) {
    return Fail(errors::kMachineAgentLost,
                "the agent of machine " + id + " did not answer: " + answered.error().message);
  }
  return {};
}

void RemoteDriver::Undo(const std::string& id) {
  // Whoever lists machines later finds it when even this fails.
  (void)Destroy(id);
}

Result<Machine> RemoteDriver::Make(const Request& request) {
  const std::string& id = request.spec->id;
  auto answer = Ask(request);
  if (!answer) {
    // It may have been made all the same when the helper ended before it said so.
    if (answer.error().code == errors::kMachineUnavailable) Undo(id);
    return Fail(std::move(answer).error());
  }
  auto machine = MachineFromJson(answer->value);
  Result<void> ready = machine ? AwaitAgent(id, std::move(answer->fd)) : Fail(machine.error());
  if (ready) return machine;
  Undo(id);
  return Fail(std::move(ready).error());
}

Result<Machine> RemoteDriver::Create(const MachineSpec& spec) {
  return Make({.operation = Operation::kCreate, .spec = spec});
}

Result<Machine> RemoteDriver::Fork(const std::string& parent, const MachineSpec& child,
                                   Extent most) {
  return Make({.operation = Operation::kFork, .id = parent, .extent = most, .spec = child});
}

Result<Machine> RemoteDriver::Restore(const std::string& snapshot, const MachineSpec& spec) {
  return Make({.operation = Operation::kRestore, .snapshot = snapshot, .spec = spec});
}

Result<void> RemoteDriver::Destroy(const std::string& id) {
  CAISSON_TRY(Ask({.operation = Operation::kDestroy, .id = id}));
  return {};
}

Result<void> RemoteDriver::Pause(const std::string& id, Level level) {
  CAISSON_TRY(Ask({.operation = Operation::kPause, .id = id, .level = level}));
  return {};
}

Result<void> RemoteDriver::Resume(const std::string& id) {
  CAISSON_ASSIGN(Answer answer, Ask({.operation = Operation::kResume, .id = id}));
  return AwaitAgent(id, std::move(answer.fd));
}

Result<Snapshot> RemoteDriver::TakeSnapshot(const std::string& id, const std::string& snapshot,
                                            Extent most) {
  CAISSON_ASSIGN(
      const Answer answer,
      Ask({.operation = Operation::kTakeSnapshot, .id = id, .snapshot = snapshot, .extent = most}));
  return SnapshotFromJson(answer.value);
}

Result<void> RemoteDriver::RemoveSnapshot(const std::string& snapshot) {
  CAISSON_TRY(Ask({.operation = Operation::kRemoveSnapshot, .snapshot = snapshot}));
  return {};
}

Result<std::vector<Snapshot>> RemoteDriver::ListSnapshots() {
  CAISSON_ASSIGN(const Answer answer, Ask({.operation = Operation::kListSnapshots}));
  return ListFrom<Snapshot>(answer.value, SnapshotFromJson);
}

Result<void> RemoteDriver::Resize(const std::string& id, std::uint64_t disk_bytes) {
  CAISSON_TRY(Ask({.operation = Operation::kResize, .id = id, .disk_bytes = disk_bytes}));
  return {};
}

Result<void> RemoteDriver::SetNetwork(const std::string& id, const egress::Policy& policy,
                                      SentCap cap) {
  CAISSON_TRY(
      Ask({.operation = Operation::kSetNetwork, .id = id, .network = policy, .sent_cap = cap}));
  return {};
}

Result<void> RemoteDriver::SetSharedNetworks(const std::string& id,
                                             const std::set<std::string>& networks) {
  CAISSON_TRY(Ask({.operation = Operation::kSetSharedNetworks, .id = id, .networks = networks}));
  return {};
}

Result<egress::NetworkLog> RemoteDriver::ReadNetworkLog(const std::string& id,
                                                        std::uint64_t after) {
  CAISSON_ASSIGN(const Answer answer,
                 Ask({.operation = Operation::kReadNetworkLog, .id = id, .after = after}));
  return NetworkLogFromJson(answer.value);
}

Result<Stats> RemoteDriver::ReadStats(const std::string& id) {
  CAISSON_ASSIGN(const Answer answer, Ask({.operation = Operation::kReadStats, .id = id}));
  return StatsFromJson(answer.value);
}

Result<std::vector<Machine>> RemoteDriver::List() {
  CAISSON_ASSIGN(const Answer answer, Ask({.operation = Operation::kList}));
  return ListFrom<Machine>(answer.value, MachineFromJson);
}

Result<os::UniqueFd> RemoteDriver::Connect(const std::string& id) {
  CAISSON_ASSIGN(Answer answer, Ask({.operation = Operation::kConnect, .id = id}));
  if (!answer.fd.valid()) {
    return Fail(errors::kMachineProtocol, "the helper sent no connection along");
  }
  return std::move(answer.fd);
}

}  // namespace caisson::machine::helper
