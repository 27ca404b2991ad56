// SPDX-License-Identifier: Apache-2.0
// A script run: source and JSON documents in, a stream of messages out while the script runs, and
// at the end a word of the host on how it went. Two entries share it: a logic block (the script
// calls done and debug) and the body of a code node (the host calls its `run`).
//
// What arrives in a message is the guest's word and unchecked; errors, limits and the end are the
// host's. A ScriptRuntime gives each run a fresh interpreter and shares nothing between runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isolate/runtime.h"
#include "json/value.h"

namespace caisson::isolate {

enum class ScriptEntry : std::uint8_t { kBlock, kBody };

// A limit of 0 means that it is not counted, save memory_bytes and wall_clock, which always are.
struct ScriptLimits {
  std::uint64_t memory_bytes = 512u << 20;  // of the guest, what its libraries take included
  std::chrono::milliseconds wall_clock{120'000};
  std::chrono::milliseconds cpu{0};
  std::uint64_t output_bytes = 256u << 20;  // JSON text of all messages together
  std::uint64_t messages = 1'000'000;       // done and debug calls, parts of lists
  std::uint64_t stream_bytes = 1u << 20;    // of stdout and of stderr each; the rest is counted
  std::uint64_t disk_bytes = 64u << 20;     // what the guest may write in its own file system
  std::uint32_t pids = 128;                 // threads count; runtimes without either ignore it
  bool operator==(const ScriptLimits&) const = default;
};

struct ScriptJob {
  ScriptEntry entry = ScriptEntry::kBlock;
  std::string source;  // any bytes; the guest's own parser judges them
  // One JSON object. kBlock: {"user":{},"documents":[],"artifacts":[],"sources":[],"tables":{}};
  // kBody: {"self":{},"state":{},"config":{}}.
  std::string inputs;
  std::string options = "{}";  // JSON object for the harness (runtimes/python)
  // Top-level names of the modules that the source imports, as a static scan finds them: they
  // choose the prepared interpreter.
  std::vector<std::string> imports;
  ScriptLimits limits;
};

enum class MessageKind : std::uint8_t {
  kDone = 1,     // JSON text of a result; `final` as the script said
  kPart = 2,     // JSON array: items of the list whose last piece comes with the next kDone
  kDebug = 3,    // JSON text
  kWarning = 4,  // JSON object {"code","message","path"?}: what the serializer had to change
  kStdout = 5,   // bytes
  kStderr = 6,   // bytes
};

struct ScriptMessage {
  MessageKind kind = MessageKind::kDone;
  bool final = true;      // kDone
  std::string_view text;  // until Take returns
};

class ScriptSink {
 public:
  virtual ~ScriptSink() = default;
  // In order, on the thread that called Run; while it blocks, the guest soon blocks too. False ends
  // the run (Fault::kKilled).
  virtual bool Take(const ScriptMessage& message) = 0;
};

// How a run ended, on the host's authority; what was delivered before stays delivered.
struct ScriptOutcome {
  Fault fault = Fault::kNone;
  std::string error_type;  // kRaised, kSyntax, kExited
  std::string message;
  std::uint32_t line = 0;                 // in ScriptJob::source, 1-based; 0: none
  std::uint32_t column = 0;               // 1-based, in characters; 0: none
  std::vector<TracebackFrame> traceback;  // frames of the script alone, outermost first
  std::string traceback_text;             // the same as Python prints it
  int exit_code = 0;                      // kExited
  std::uint64_t stdout_dropped = 0;
  std::uint64_t stderr_dropped = 0;
  // After the first final kDone a script has a moment to end by itself; what it still prints is
  // passed on, results are only counted, and nothing is an error any more.
  std::uint64_t late_done = 0;
  std::uint64_t late_debug = 0;
  Usage usage;
  std::chrono::nanoseconds cpu{0};
  bool ok() const { return fault == Fault::kNone; }
};

class ScriptRuntime {
 public:
  virtual ~ScriptRuntime() = default;
  // Thread-safe, blocks. A Status means that no guest code's behaviour is the cause.
  virtual Result<ScriptOutcome> Run(const ScriptJob& job, ScriptSink& sink,
                                    std::stop_token stop) = 0;
  virtual json::Value Describe() const = 0;
};

}  // namespace caisson::isolate
