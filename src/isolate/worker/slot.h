// SPDX-License-Identifier: Apache-2.0
// One place for a worker in the pool: the process, the calls that it has, and the bytes on their
// way in and out. No locking and no threads: the pool's lock guards it, except Receive, which only
// the thread that leads the slot calls.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "isolate/worker/frame.h"
#include "isolate/worker/process.h"
#include "isolate/worker/worker.h"

namespace caisson::isolate {

struct Slot;

// A call from Submit or Call until its result is there.
struct PendingCall {
  using Clock = std::chrono::steady_clock;

  EncodedJob job;
  WorkerRuntime::Callback callback;  // Submit; empty: a thread waits on `wake`
  std::condition_variable wake;
  bool done = false;
  std::optional<Result<EncodedOutcome>> result;

  Slot* slot = nullptr;  // whose worker has it
  std::uint64_t number = 0;
  bool sent = false;             // wholly
  bool sent_again = false;       // once: its first worker was gone before it had the call
  Clock::time_point head_since;  // when it became the worker's next

  bool has_waiter() const { return !callback; }
};
using PendingPtr = std::shared_ptr<PendingCall>;

// The numbers under which a worker knows sources. Bounded: when full, all are forgotten.
class SourceTable {
 public:
  struct Entry {
    std::uint32_t number = 0;
    bool is_new = false;      // must be sent
    bool forget_all = false;  // before that, the others must be forgotten
  };
  Entry Find(const std::string& source);
  void Clear();

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::size_t bytes_ = 0;
  std::uint32_t next_ = 0;
};

struct Slot {
  enum class State : unsigned char { kDown, kStarting, kUp, kDying };

  State state = State::kDown;
  bool led = false;  // a thread reads replies and writes what could not be sent at once
  bool dead_seen = false;
  std::optional<WorkerProcess> worker;
  std::deque<PendingPtr> in_flight;  // the front is being executed
  std::optional<Outcome> head_fate;  // kDying: what the front gets, when the exit status is moot
  std::string violation;             // kDying: what the worker did wrong, if it did
  std::uint64_t next_number = 1;

  os::UniqueFd leader_wake;
  os::UniqueFd thread_wake;
  std::thread thread;

  // Appends the call's frames to the outgoing bytes.
  void Queue(const PendingPtr& call);
  // Sends what the socket takes. False: the channel is broken.
  bool Flush();
  bool has_output() const { return !output_.empty(); }

  enum class Received : unsigned char { kSome, kNothing, kClosed };
  Received Receive();
  // The next whole reply, checked against the front of in_flight; empty when there is none (then
  // violation() says whether there never will be).
  std::optional<ReplyMessage> NextReply();

  // Forgets the worker; it must have ended.
  void Reset();

 private:
  struct Output {
    std::string head;       // owned
    std::string_view rest;  // in call->job
    PendingPtr call;        // null: none; else it is wholly sent with this piece
    std::size_t sent = 0;
  };

  std::deque<Output> output_;
  FrameReader reader_;
  SourceTable sources_;
};

}  // namespace caisson::isolate
