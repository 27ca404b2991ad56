// SPDX-License-Identifier: Apache-2.0
// The HTTP endpoint by which code in the machine asks for something about the machine itself:
// POST /self/pause or /self/delete, with ?reason=, on 127.0.0.1. Answers 202: the host has been
// told, or will be. No HTTP server: one request per connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/guest/failure.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

struct Agent;

// A complete request head ("POST /self/pause HTTP/1.1\r\n…\r\n\r\n"), and what to answer to it.
struct SelfAnswer {
  int status = 400;
  std::string reason;                  // of the status
  std::string body;                    // JSON
  std::optional<SelfRequest> request;  // when the status is 202
};
SelfAnswer AnswerSelf(std::string_view head);

// Listens for as long as it lives, and writes the port to agent.self_port. Fails when the port is
// taken.
class SelfEndpoint {
 public:
  static Attempt<std::unique_ptr<SelfEndpoint>> Listen(Agent& agent, std::uint16_t port);
  virtual ~SelfEndpoint() = default;
};

}  // namespace caisson::agent::guest
