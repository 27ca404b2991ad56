// SPDX-License-Identifier: Apache-2.0
// Counters of node visits, kept across runs: invocations, successes, and one counter per kind of
// error, by node type and runtime. Each visit counts once as an invocation and once as its end.
// Thread-safe. Exporting them is not its business.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "json/value.h"

namespace caisson::graph {

enum class Ending : std::uint8_t {
  kSuccess,
  kError,  // the node's own error, or an exception of the guest
  kSyntax,
  kFuel,
  kMemory,
  kWallClock,
  kOutput,
  kProtocol,
  kExited,
  kArtifact,
  kKilled,
  kMarshalling,
  kCancelled,
  kInterrupted,  // it waits for an answer
  kInternal,
};
inline constexpr std::size_t kEndings = 15;
std::string_view EndingName(Ending ending);  // "success", "error", "fuel", ...

class Metrics {
 public:
  struct Counters {
    std::uint64_t invocations = 0;
    std::array<std::uint64_t, kEndings> endings{};
  };

  // `runtime` is "host" for native nodes, "node_host" for those that it serves.
  void Invoked(std::string_view node_type, std::string_view runtime);
  void Ended(std::string_view node_type, std::string_view runtime, Ending ending);
  Counters Get(std::string_view node_type, std::string_view runtime) const;
  // [{"node_type","runtime","invocations","success","error",...}], by type and runtime.
  json::Value ToJson() const;

 private:
  Counters& At(std::string_view node_type, std::string_view runtime);
  mutable std::mutex mutex_;
  using ByRuntime = std::map<std::string, Counters, std::less<>>;
  std::map<std::string, ByRuntime, std::less<>> counters_;  // by node type
};

}  // namespace caisson::graph
