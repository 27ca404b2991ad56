// SPDX-License-Identifier: Apache-2.0
#include "machine/helper/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "errors/machine.h"
#include "machine/helper/protocol.h"
#include "os/syscall_error.h"

namespace caisson::machine::helper {
namespace {

struct Answer {
  json::Value value;
  os::UniqueFd fd;
};

Result<Answer> Done(const Result<void>& result) {
  if (!result) return Fail(result.error());
  return Answer{};
}

template <typename T>
Result<Answer> Told(const Result<T>& result) {
  if (!result) return Fail(result.error());
  return Answer{.value = ToJson(*result), .fd = {}};
}

template <typename T>
Result<Answer> Listed(const Result<std::vector<T>>& result) {
  if (!result) return Fail(result.error());
  json::Array list;
  for (const T& item : *result) list.push_back(ToJson(item));
  return Answer{.value = json::Value(std::move(list)), .fd = {}};
}

// A machine that was made or resumed, and a connection to its agent: who asked waits for that next.
template <typename T>
Result<Answer> Ready(Machines& machines, uid_t caller, const std::string& id,
                     const Result<T>& result) {
  if (!result) return Fail(result.error());
  Answer answer;
  if constexpr (!std::is_void_v<T>) answer.value = ToJson(*result);
  if (auto connection = machines.Connect(caller, id)) answer.fd = *std::move(connection);
  return answer;
}

Result<Answer> Perform(const MachinesByDriver& drivers, uid_t caller, const Request& request) {
  const auto named = drivers.find(request.driver);
  if (named == drivers.end()) {
    return Fail(errors::kMachineUnavailable,
                "this helper hosts no driver of that name; start `caisson machined` with --driver");
  }
  Machines& machines = *named->second;
  switch (request.operation) {
    case Operation::kCapabilities:
      return Answer{.value = ToJson(machines.capabilities()), .fd = {}};
    case Operation::kCreate:
      return Ready(machines, caller, request.spec->id, machines.Create(caller, *request.spec));
    case Operation::kDestroy:
      return Done(machines.Destroy(caller, request.id));
    case Operation::kPause:
      return Done(machines.Pause(caller, request.id, request.level));
    case Operation::kResume:
      return Ready(machines, caller, request.id, machines.Resume(caller, request.id));
    case Operation::kFork:
      return Ready(machines, caller, request.spec->id,
                   machines.Fork(caller, request.id, *request.spec, request.extent));
    case Operation::kTakeSnapshot:
      return Told(machines.TakeSnapshot(caller, request.id, request.snapshot, request.extent));
    case Operation::kRestore:
      return Ready(machines, caller, request.spec->id,
                   machines.Restore(caller, request.snapshot, *request.spec));
    case Operation::kRemoveSnapshot:
      return Done(machines.RemoveSnapshot(caller, request.snapshot));
    case Operation::kListSnapshots:
      return Listed(machines.ListSnapshots(caller));
    case Operation::kResize:
      return Done(machines.Resize(caller, request.id, request.disk_bytes));
    case Operation::kSetNetwork:
      return Done(machines.SetNetwork(caller, request.id, *request.network, request.sent_cap));
    case Operation::kSetSharedNetworks:
      return Done(machines.SetSharedNetworks(caller, request.id, request.networks));
    case Operation::kReadNetworkLog:
      return Told(machines.ReadNetworkLog(caller, request.id, request.after));
    case Operation::kReadStats:
      return Told(machines.ReadStats(caller, request.id));
    case Operation::kList:
      return Listed(machines.List(caller));
    case Operation::kConnect: {
      CAISSON_ASSIGN(os::UniqueFd fd, machines.Connect(caller, request.id));
      return Answer{.value = {}, .fd = std::move(fd)};
    }
  }
  return Fail(errors::kMachineProtocol, "there is no such operation");
}

std::unexpected<Status> SocketError(const std::string& what) {
  return Fail(errors::kMachineState, what + ": " + os::ErrnoText(errno));
}

bool IsListenedOn(const sockaddr_un& address) {
  const os::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.valid() &&
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Result<os::UniqueFd> Bind(const std::string& path, uid_t user) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(errors::kMachineState, "the path of the socket is too long: " + path);
  }
  path.copy(address.sun_path, path.size());
  if (IsListenedOn(address)) {
    return Fail(errors::kMachineState, "another helper listens on " + path);
  }
  (void)::unlink(path.c_str());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return SocketError("socket");
  // Nobody else can connect in between: the mode is right from the start.
  const mode_t mask = ::umask(0177);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0) return SocketError("bind " + path);
  if (::chown(path.c_str(), user, static_cast<gid_t>(-1)) != 0) return SocketError("chown " + path);
  if (::listen(socket.get(), 64) != 0) return SocketError("listen on " + path);
  return socket;
}

}  // namespace

Server::Server(MachinesByDriver drivers, os::UniqueFd socket, uid_t user)
    : drivers_(std::move(drivers)), listener_(std::move(socket)), user_(user) {}

Result<std::unique_ptr<Server>> Server::Listen(MachinesByDriver drivers, const std::string& socket,
                                               uid_t user) {
  CAISSON_ASSIGN(os::UniqueFd bound, Bind(socket, user));
  return std::unique_ptr<Server>(new Server(std::move(drivers), std::move(bound), user));
}

Server::~Server() {
  // What is under way is finished; its caller is told, or has gone.
  for (Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RD);
  for (Connection& connection : connections_) connection.thread.join();
}

Result<void> Server::Run(const std::stop_token& stop) {
  CAISSON_ASSIGN(const os::UniqueFd wake, os::MakeEventFd());
  const std::stop_callback on_stop(stop, [&wake] { ::eventfd_write(wake.get(), 1); });
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> events = {{{listener_.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}}};
    if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) {
      return os::SyscallError("poll");
    }
    JoinEnded();
    if ((events[0].revents & POLLIN) != 0) Accept();
  }
  return {};
}

void Server::JoinEnded() {
  std::erase_if(connections_, [](Connection& connection) {
    if (!connection.done) return false;
    connection.thread.join();
    return true;
  });
}

bool Server::HasRoomFor(pid_t process) const {
  const auto of_process = std::ranges::count(connections_, process, &Connection::process);
  return connections_.size() < kMaxConnections &&
         static_cast<std::size_t>(of_process) < kMaxOfProcess;
}

void Server::Accept() {
  os::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!socket.valid() || ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != user_ || !HasRoomFor(peer.pid)) {
    return;
  }
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.process = peer.pid;
  connection.thread = std::thread([this, &connection, caller = peer.uid] {
    Serve(connection.socket.get(), caller);
    ::shutdown(connection.socket.get(), SHUT_RDWR);
    connection.done = true;
  });
}

void Server::Serve(int socket, uid_t caller) {
  while (true) {
    auto frame = ReceiveFrame(socket, kMaxRequestBytes);
    if (!frame || !*frame) return;
    (*frame)->fd.Reset();  // no request brings one
    const auto request = DecodeRequest((*frame)->text);
    Result<Answer> answer = request ? Perform(drivers_, caller, *request) : Fail(request.error());
    auto text = answer ? EncodeReply(answer->value) : EncodeFailure(answer.error());
    if (!text) text = EncodeFailure(text.error());
    if (!text || !SendFrame(socket, *text, answer ? answer->fd.get() : -1)) return;
  }
}

}  // namespace caisson::machine::helper
