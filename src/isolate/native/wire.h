// SPDX-License-Identifier: Apache-2.0
// What the supervisor, the zygote and a call say to one another: fixed structures over sockets that
// keep message boundaries, and the numbers of a call's descriptors. Also compiled into the guest's
// library, which has no libc: constants and plain structures only.
#pragma once

#include <stdint.h>

namespace caisson::isolate::native {

// In a call, once it is walled in. Everything else from 3 on is closed.
inline constexpr int kJobFd = 3;        // what to run; the harness closes it
inline constexpr int kChannelFd = 512;  // messages to the supervisor; jail::kFirstHostFd

// To a zygote, with one descriptor: the far end of the socket on which the call is reached.
struct ForkRequest {
  uint64_t version;
};
inline constexpr uint64_t kWireVersion = 1;

// To a call that waits, with kRequestFds descriptors in this order.
enum RequestFd { kJob, kChannel, kStdout, kStderr, kRequestFds };
struct CallRequest {
  uint64_t disk_bytes;
  uint64_t disk_inodes;
  uint64_t data_bytes;     // private writable memory over what the zygote has; 0: as inherited
  uint64_t address_bytes;  // address space over what the zygote has; 0: as inherited
  uint32_t threads;
  uint32_t cpu_seconds;  // 0: as inherited
};

// Replies, on the call's socket: kStarted (with a pidfd) and kEnded are the zygote's, kFailed
// either's.
enum class ReplyKind : uint32_t { kStarted = 1, kFailed = 2, kEntered = 3, kEnded = 4 };
struct Reply {
  ReplyKind kind;
  int32_t error;       // kFailed: an errno
  int32_t status;      // kEnded: as wait(2) gives it
  uint32_t wall;       // kFailed: a jail::Wall
  uint64_t cpu_ns;     // kEnded
  uint64_t max_bytes;  // kEnded: resident at most, pages shared with the zygote included
  char step[64];       // kFailed: what failed
};

// What a zygote's program hands to the library.
struct ServeOptions {
  const void* filter;  // sock_filter[filter_length], of a call
  uint32_t filter_length;
  uint32_t leave_out;  // bits of jail::WallSet
  int32_t control;     // requests come in here; the zygote ends when it closes
  uint32_t may_execute;
  // Stretches of memory that every script writes to, as pairs of address and length: a call copies
  // them at one go before it has its script, and not page by page after.
  const uint64_t* written;
  uint32_t written_count;  // of pairs
};

}  // namespace caisson::isolate::native
