// SPDX-License-Identifier: Apache-2.0
// The way into a virtual machine whose host connects by vsock: each connection is a stream of
// channels (agent/channels.h), one at a time. The last one counts, since a host that comes anew has
// lost the one before, as after a copy. Only the host is heard, not what else is in the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "agent/channel_pump.h"
#include "agent/guest/loop.h"
#include "os/fd.h"

namespace caisson::agent::guest {

struct Agent;

// Connections of the host that come as channels of `stream`.
std::unique_ptr<ChannelPump> ServeChannels(Agent& agent, os::UniqueFd stream, StreamKind kind,
                                           std::function<void()> on_broken);

// Invalid, with errno, when there is no vsock or the port is taken.
os::UniqueFd ListenOnVsock(std::uint32_t port);

class HostStreams {
 public:
  // `listener` is not blocking: of vsock, or of the Unix domain where something else stands
  // between the machine and its host.
  HostStreams(Agent& agent, os::UniqueFd listener);

 private:
  void Accept();
  void Drop();

  Agent& agent_;
  EventSource source_;
  Timer again_;
  std::unique_ptr<ChannelPump> pump_;
};

}  // namespace caisson::agent::guest
