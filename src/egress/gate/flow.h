// SPDX-License-Identifier: Apache-2.0
// Bytes both ways between a guest and where it wanted to go, once that is allowed: by splice(2)
// where nothing needs to be looked at, by way of a buffer where something does. Holds no more than
// a pipe and a buffer each way, waits for the slower side, keeps half-closes; when one side is
// reset so is the other. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/fd.h"

namespace caisson::egress::gate {

// Empty pipes, kept for the next who needs one.
class Pipes {
 public:
  static constexpr std::size_t kKept = 64;

  // Fails when descriptors have run out.
  std::optional<os::FdPair> Take();
  // Must be empty.
  void Give(os::FdPair pipe);

 private:
  std::vector<os::FdPair> kept_;
};

// Makes the close of a TCP socket a reset.
void ResetOnClose(int fd);

class Relay {
 public:
  // How many bytes may pass: all, some (the rest is looked at again, with what follows on it), or
  // none any more.
  struct Verdict {
    bool refused = false;
    std::size_t size = 0;
    std::uint64_t ahead = 0;  // when all may go: so many bytes more need not be looked at
  };
  static constexpr std::uint64_t kAll = UINT64_MAX;  // no more than that will ever come
  // Of bytes that follow on those allowed before, not empty. May stop after some, and must then
  // have allowed one at least, so that nothing takes long; 0: it needs more to decide.
  using Inspect = std::function<Verdict(std::string_view bytes)>;
  static constexpr std::size_t kBuffer = 64u << 10;
  struct Looks {
    Inspect out, in;  // from the guest, to it; empty: everything may pass
  };

  // `early`: what has come from the guest before, not yet inspected by this.
  Relay(Pipes& pipes, int guest, int world, std::string early, Looks looks);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  enum class State : std::uint8_t {
    kOpen,     // waits for either side
    kAgain,    // there is more to do, others first
    kDone,     // both sides have closed in order
    kBroken,   // a side was reset
    kRefused,  // by `inspect`
  };
  // Goes on with what these sides may have become ready for (both at first), both ways by turns,
  // and stops with kAgain at `until`, after one step of each way at least.
  State Continue(bool guest_ready, bool world_ready, std::chrono::steady_clock::time_point until);
  bool is_half_closed() const { return out_.closed || in_.closed; }

 private:
  // One way: what was read and not yet written is in a pipe or in a buffer.
  struct Way {
    int from = -1;
    int to = -1;
    bool readable = true;
    bool writable = true;
    bool ended = false;   // `from` sends no more
    bool closed = false;  // and `to` was told
    std::optional<os::FdPair> pipe;
    std::size_t in_pipe = 0;
    Inspect inspect;
    std::string buffer;       // what is, or was, to be inspected
    std::size_t allowed = 0;  // of the buffer
    std::uint64_t ahead = 0;  // behind the buffer
  };
  enum class Step : std::uint8_t { kBlocked, kProgress, kBroken, kRefused };
  Step Splice(Way& way, std::uint64_t most);
  Step Copy(Way& way);
  Step Fill(Way& way);
  Step WriteBuffer(Way& way);
  bool CloseIfEmpty(Way& way);

  Pipes& pipes_;
  Way out_;  // from the guest
  Way in_;   // to the guest
};

}  // namespace caisson::egress::gate
