// SPDX-License-Identifier: Apache-2.0
// The block service: speaks the line protocol (docs/block-protocol.md) on any number of
// connections and carries out their runs. Thread-safe. SIGPIPE must be ignored.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "block/limits.h"
#include "block/run_queue.h"
#include "block/runtimes.h"
#include "block/settler.h"

namespace caisson::block {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMaxLineBytes = 64u << 20;

struct ServiceOptions {
  LimitPolicy limits;
  std::size_t max_line_bytes = kMaxLineBytes;
  std::size_t max_part_bytes = kMaxPartBytes;
  std::string version;                     // of the program, for `hello`
  std::chrono::milliseconds grace{5'000};  // for a reader that takes nothing at the very end
};

class Service {
 public:
  // All outlive the service.
  Service(const RuntimeSet& runtimes, const ServiceOptions& options, RunQueue& queue)
      : runtimes_(runtimes), options_(options), queue_(queue) {}

  // One connection, on the calling thread, until its input has ended and its runs are over, its
  // reader has gone, or `stop`. Owns neither descriptor; they may be the same. Gives the errno that
  // kept answers from being written, 0 when all were. Fails when the connection cannot be begun.
  Result<int> Serve(int in, int out, const std::stop_token& stop);

  std::string Hello() const;

 private:
  const RuntimeSet& runtimes_;
  const ServiceOptions options_;
  RunQueue& queue_;
};

}  // namespace caisson::block
