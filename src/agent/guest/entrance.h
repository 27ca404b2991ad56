// SPDX-License-Identifier: Apache-2.0
// Where the host connects to an agent that is not alone in charge of a computer: a listening
// socket. One that the agent has made itself can be let go for a while, since a kernel in user
// space cannot be written to a file while the host holds ends of its sockets.
#pragma once

#include <string>

#include "agent/guest/failure.h"
#include "agent/guest/loop.h"
#include "os/fd.h"

namespace caisson::agent::guest {

struct Agent;
class HostConnection;

// A socket at a path, in place of one that an earlier life of the machine has left. Invalid, with
// errno, when it cannot be had.
os::UniqueFd ListenAt(const std::string& path);

class Entrance {
 public:
  // `path`: where ListenAt made the listener; empty: somebody else did.
  Entrance(Agent& agent, os::UniqueFd listener, std::string path);

  // Closes the socket and every connection but `asker`, until there is a file at <path>.wake, which
  // is then removed, or kMostAsleep is over. Fails while commands or streams of the host are open,
  // which would end.
  Attempt<void> LetGo(const HostConnection* asker);

 private:
  void Begin(os::UniqueFd listener);
  void Accept();
  void ForgetAllBut(const HostConnection* one);
  void LookForWake();
  bool asleep() const { return source_ == nullptr; }

  Agent& agent_;
  const std::string path_;
  std::unique_ptr<EventSource> source_;
  Timer again_;
  Timer look_;
  Clock::time_point until_;
};

}  // namespace caisson::agent::guest
