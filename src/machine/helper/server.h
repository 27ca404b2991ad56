// SPDX-License-Identifier: Apache-2.0
// The helper behind `caisson machined`: the one process that is root, and does for the service what
// needs it. Hosts one or several drivers. Listens on a Unix socket for one user; every request is
// decoded, checked, and done for the machines of the caller alone. One thread per connection.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/status.h"
#include "machine/machines.h"
#include "os/fd.h"

namespace caisson::machine::helper {

class Server {
 public:
  static constexpr std::size_t kMaxConnections = 256;
  // So that there is room for another process of the user's, whatever one does.
  static constexpr std::size_t kMaxOfProcess = 192;

  // Binds `socket`, which only `user` and root can connect to; a socket that nobody listens on any
  // more is replaced. Fails with machine.state.
  static Result<std::unique_ptr<Server>> Listen(MachinesByDriver drivers, const std::string& socket,
                                                uid_t user);
  ~Server();

  // Serves until stopped. Machines stay.
  Result<void> Run(const std::stop_token& stop);

 private:
  struct Connection {
    os::UniqueFd socket;
    pid_t process = 0;  // at the other end, when it connected
    std::thread thread;
    std::atomic<bool> done = false;
  };
  Server(MachinesByDriver drivers, os::UniqueFd socket, uid_t user);
  void Accept();
  bool HasRoomFor(pid_t process) const;
  void Serve(int socket, uid_t caller);
  void JoinEnded();

  MachinesByDriver drivers_;
  os::UniqueFd listener_;
  const uid_t user_;
  std::list<Connection> connections_;
};

}  // namespace caisson::machine::helper
