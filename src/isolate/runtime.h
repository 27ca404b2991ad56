// SPDX-License-Identifier: Apache-2.0
// An isolate is one call: source and JSON in, JSON out, nothing left behind. It has no network, no
// files, no clock it can trust, no environment. A Runtime makes such calls; what the guest did is
// an Outcome, and only when *we* fail does a call give a Status.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::isolate {

struct Limits {
  std::uint64_t memory_bytes = 256u << 20;  // linear memory of the instance
  std::uint64_t heap_bytes = 8u << 20;      // the guest's own heap (a snapshot per size)
  std::uint64_t fuel = 1'000'000'000;       // 0: not counted
  std::chrono::milliseconds wall_clock{30'000};
  std::uint64_t output_bytes = 64u << 20;  // the result's JSON text, checked while produced
  std::uint64_t stdout_bytes = 64u << 10;  // kept of what the guest prints; the rest is counted
  bool operator==(const Limits&) const = default;
};

// One call of `run(self, state, config)`.
struct Job {
  // Canonical module source that defines `run` (workflow::RunnableBody::source). Runtimes key their
  // caches by it.
  std::string source;
  json::Value self;    // object: attribute -> value
  json::Value state;   // object
  json::Value config;  // object
  Limits limits;
};

// Why a guest did not give a value.
enum class Fault : std::uint8_t {
  kNone,
  kRaised,  // an exception of the guest's code; type, message and traceback are set
  kSyntax,  // the runtime refused the source
  kFuel,
  kCpu,     // time on a processor; only runtimes that take no fuel
  kMemory,  // see MemoryKind
  kWallClock,
  kOutput,
  kMessages,  // too many of them; scripts only
  kProtocol,  // the result is no JSON object, or the guest broke the call protocol
  kExited,    // SystemExit or another BaseException ended the guest
  kArtifact,  // a trap that no limit explains: a fault of the artifact, not of the author
  kKilled,    // the process around the isolate died; only this call is lost
};
enum class MemoryKind : std::uint8_t { kNone, kLinear, kHeap };

struct TracebackFrame {
  std::uint32_t line = 0;  // in Job::source
  std::string function;
};

struct Usage {
  std::chrono::nanoseconds wall{0};
  std::uint64_t fuel = 0;
  std::uint64_t memory_bytes = 0;  // linear memory at the end
  std::uint64_t output_bytes = 0;
};

struct Outcome {
  Fault fault = Fault::kNone;
  json::Value value;  // fault == kNone: what run returned
  MemoryKind memory = MemoryKind::kNone;
  std::string error_type;  // kRaised, kExited: the guest's class name
  std::string message;
  std::vector<TracebackFrame> traceback;  // outermost first; lines of Job::source
  std::string stdout_text;                // what the guest printed, cut at Limits::stdout_bytes
  std::uint64_t stdout_dropped = 0;
  Usage usage;
  bool ok() const { return fault == Fault::kNone; }
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // Thread-safe. Blocks until the call has ended. A Status means that no guest code's behaviour is
  // the cause (a missing artifact, no worker to be had).
  virtual Result<Outcome> Call(const Job& job) = 0;
  // Name, versions and hashes, limits: see `caisson describe`.
  virtual json::Value Describe() const = 0;
};

}  // namespace caisson::isolate
