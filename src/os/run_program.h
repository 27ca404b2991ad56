// SPDX-License-Identifier: Apache-2.0
// Runs a program of the host to its end and captures what it prints. For trusted tools only: the
// child keeps this process's identity and environment. No shell is involved. The child does not
// outlive the calling thread.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "os/process.h"

namespace caisson::os {

struct Program {
  // The first is looked up in PATH unless it has a slash.
  std::vector<std::string> arguments;
  // Added to this process's environment, or in place of the variable of that name.
  std::vector<std::pair<std::string, std::string>> variables;
  std::string directory;  // to start in; empty: here
  std::string input;      // a file that becomes standard input; empty: /dev/null
  std::string output;     // a file that standard output is written to; empty: captured
  // Gets each whole line of standard error when it comes, without its end; on the calling thread.
  std::function<void(std::string_view)> on_message;
};

struct ProgramEnd {
  ExitStatus status;
  std::string output;    // captured standard output
  std::string messages;  // the end of standard error, whole lines, at most kKeptMessages
  bool succeeded() const { return status == ExitStatus{}; }
};

inline constexpr std::size_t kMaxCapturedOutput = 64u << 20;
inline constexpr std::size_t kKeptMessages = 16u << 10;

// The path of an executable file that a shell would run for `name`; empty when there is none.
std::string FindProgram(const std::string& name);

// When `stop` is requested the program gets SIGTERM, and SIGKILL ten seconds later. How it ended is
// no failure of this call. Fails with os.syscall when it cannot be started or prints more than
// kMaxCapturedOutput.
Result<ProgramEnd> RunProgram(const Program& program, const std::stop_token& stop = {});

}  // namespace caisson::os
