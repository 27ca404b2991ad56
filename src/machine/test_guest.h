// SPDX-License-Identifier: Apache-2.0
// For tests: runs commands in a machine through its agent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/client.h"
#include "machine/driver.h"

namespace caisson::machine {

struct Ran {
  std::string error;  // of ours; empty when the command ended
  std::string out;    // both streams
  int exit_code = -1;
  int signal = 0;
  bool operator==(const Ran&) const = default;
};

inline Ran Run(Driver& driver, const std::string& id, std::vector<std::string> argv,
               std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  Ran ran;
  auto connection = driver.Connect(id);
  if (!connection) return {.error = connection.error().message, .out = {}};
  agent::ExecRequest request;
  request.command.argv = std::move(argv);
  request.command.env = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                         {"HOME", "/root"},
                         {"LC_ALL", "C.UTF-8"}};
  request.timeout = timeout;
  auto exec = agent::Exec::Start(*std::move(connection), request);
  if (!exec) return {.error = exec.error().message, .out = {}};
  for (;;) {
    auto event = exec->Next();
    if (!event) {
      ran.error = event.error().message;
      return ran;
    }
    using Kind = agent::ExecEvent::Kind;
    switch (event->kind) {
      case Kind::kStdout:
      case Kind::kStderr:
        if (ran.out.size() < (1u << 20)) ran.out += event->data;
        break;
      case Kind::kFailedToStart:
        ran.error = "failed to start: " + std::string(event->data);
        return ran;
      case Kind::kExit:
        ran.exit_code = event->exit_code;
        ran.signal = event->signal;
        if (event->timed_out) ran.error = "timed out";
        return ran;
      default:
        break;
    }
  }
}

inline Ran Python(Driver& driver, const std::string& id, const std::string& code,
                  std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  return Run(driver, id, {"python3", "-ISc", code}, timeout);
}

}  // namespace caisson::machine
