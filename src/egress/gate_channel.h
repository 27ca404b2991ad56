// SPDX-License-Identifier: Apache-2.0
// One end of the socketpair between helper and gate: bytes in and out without ever blocking, whole
// messages, descriptors that came along. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "egress/gate_protocol.h"
#include "os/fd.h"

namespace caisson::egress {

class GateChannel {
 public:
  // A stream socket of AF_UNIX; closed with this object.
  explicit GateChannel(os::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // Takes what has come. False when the other end has closed. Fails with os.syscall.
  Result<bool> Receive();
  // The next whole message, if there is one. Fails with egress.gate when what came is none.
  Result<std::optional<GateMessage>> Next();
  // Descriptors that came so far and were not taken yet; close-on-exec.
  std::vector<os::UniqueFd> TakeDescriptors() { return std::exchange(descriptors_, {}); }

  // Puts a message behind those that wait to go out; `descriptors` go with its first byte and are
  // copied by the kernel once it is sent.
  void Queue(const GateMessage& message, std::vector<os::UniqueFd> descriptors = {});
  // Sends as much as the other end has room for. Fails with os.syscall.
  Result<void> Send();
  std::size_t waiting() const { return out_.size() - sent_; }

 private:
  os::UniqueFd socket_;
  std::string in_;
  std::size_t taken_ = 0;
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t descriptors_at_ = 0;  // in out_
  std::vector<os::UniqueFd> outgoing_;
  std::vector<os::UniqueFd> descriptors_;
};

}  // namespace caisson::egress
