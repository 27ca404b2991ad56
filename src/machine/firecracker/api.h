// SPDX-License-Identifier: Apache-2.0
// Firecracker's API over its Unix socket. Blocking, each call with a bound. What it says is told in
// messages and not believed: whoever has taken it over may say anything. Not synchronised.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "http/client.h"
#include "machine/firecracker/calls.h"

namespace caisson::machine::firecracker {

class Api {
 public:
  static Result<Api> Open(const std::string& socket);

  // Fails with machine.vm_failed (it refuses, in its own words; it does not answer; it has ended),
  // machine.full when its disk is, machine.damaged when a saved state is not what was written.
  Result<void> Do(const Call& call, std::chrono::milliseconds patience);

 private:
  explicit Api(http::Client client) : client_(std::move(client)) {}
  http::Client client_;
};

// Whether somebody accepts connections at this Unix socket.
bool IsListening(const std::string& socket);

}  // namespace caisson::machine::firecracker
