// SPDX-License-Identifier: Apache-2.0
// The host's end of a connection to a vsock port of a guest, as Firecracker has it: a Unix socket
// that takes "CONNECT PORT\n" and answers "OK NUMBER\n" once the guest has accepted; from then on
// it is the stream. Not blocking, for one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/guest/loop.h"
#include "os/fd.h"

namespace caisson::machine::firecracker {

class HybridDialer {
 public:
  struct Patience {
    std::chrono::milliseconds answer{1'000};  // after which it begins anew
    std::chrono::milliseconds pause{20};      // before that, when it was refused
  };
  using Take = std::function<void(os::UniqueFd stream)>;
  // `socket` is a path of at most 107 bytes.
  HybridDialer(agent::guest::Loop& loop, std::string socket, std::uint32_t port, Take take,
               Patience patience);

  // Tries until there is a stream, which is taken from the loop. What is under way is given up.
  void Dial();

 private:
  void Begin();
  void Read();
  void Retry();

  agent::guest::Loop& loop_;
  const std::string socket_;
  const std::uint32_t port_;
  const Take take_;
  const Patience patience_;
  std::unique_ptr<agent::guest::EventSource> source_;
  std::string line_;  // what has come of the answer
  agent::guest::Timer again_;
  agent::guest::Timer late_;
};

}  // namespace caisson::machine::firecracker
