// SPDX-License-Identifier: Apache-2.0
// How a run of a block ended, on the host's authority, and its JSON form (the `end` frame of
// docs/block-protocol.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isolate/script.h"

namespace caisson::block {

enum class SettledBy : std::uint8_t { kFinalDone, kEnd, kError, kLimit, kCancel };

// "final_done", "end", "error", "limit", "cancel".
std::string_view SettledByName(SettledBy settled_by);

struct BlockError {
  ErrorCode code;
  std::string message;       // the guest's text, perhaps no UTF-8
  std::string type;          // the exception's class
  std::uint32_t line = 0;    // in the script, 1-based; 0: none
  std::uint32_t column = 0;  // 1-based, in characters; 0: none
  std::vector<isolate::TracebackFrame> frames;
  std::string traceback;
  std::string_view limit;  // block.limit: its name in requests
  std::optional<int> exit_code;
};

struct Dropped {
  std::uint64_t done = 0;
  std::uint64_t debug = 0;
  std::uint64_t warning = 0;
  std::uint64_t parts = 0;  // that belong to no done
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
};

struct BlockUsage {
  std::chrono::nanoseconds wall{0};
  std::chrono::nanoseconds cpu{0};
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t output_bytes = 0;  // done, part and debug, delivered or not
  std::uint64_t messages = 0;      // the same
};

struct BlockOutcome {
  SettledBy settled_by = SettledBy::kEnd;
  std::uint64_t results = 0;  // done calls delivered
  std::optional<BlockError> error;
  std::optional<BlockError> late_error;  // after the final done
  Dropped dropped;
  BlockUsage usage;

  bool ok() const { return !error; }
  bool no_result() const { return results == 0; }
};

// The members of the outcome without the braces around them, on one line, UTF-8. Texts of the guest
// are cut to a bounded length.
std::string EncodeOutcome(const BlockOutcome& outcome);
// One error as a JSON object, the same way.
std::string EncodeError(const BlockError& error);

}  // namespace caisson::block
