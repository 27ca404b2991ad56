// SPDX-License-Identifier: Apache-2.0
// The loop of a zygote and the waiting of a call. The loop is entered from Python once the imports
// are done and returns there in a call's process only; the zygote itself runs no Python any more
// and ends in here. A call does what every one of them must, then waits for its script, and comes
// back to Python once more, walled in.
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#include "isolate/native/guest/kernel.h"
#include "isolate/native/guest/walls.h"
#include "isolate/native/wire.h"

namespace caisson::isolate::native {
namespace {

// The kernel's own layouts; its headers leave these to the libc.
struct IoVector {
  void* base;
  size_t length;
};
struct MessageHeader {
  void* name;
  int name_length;
  IoVector* vectors;
  size_t vector_count;
  void* control;
  size_t control_length;
  unsigned flags;
};
struct ControlHeader {
  size_t length;
  int level;
  int type;
};
struct Poll {
  int fd;
  short events;
  short revents;
};
constexpr int kSocketLevel = 1;
constexpr int kRights = 1;
constexpr int kCloexecFds = 0x40000000;  // MSG_CMSG_CLOEXEC
constexpr int kNoSignal = 0x4000;        // MSG_NOSIGNAL
constexpr long kInterrupted = -4;

template <int N>
struct RightsBuffer {
  ControlHeader header;
  int fds[N + N % 2];
};

// Calls under way. The supervisor has few at a time; more than these are refused.
constexpr int kMaxCalls = 256;
struct RunningCall {
  int pid = 0;
  int socket = -1;
};

class Zygote {
 public:
  explicit Zygote(const ServeOptions& options)
      : options_(options),
        user_(static_cast<uint32_t>(Kernel(__NR_geteuid))),
        group_(static_cast<uint32_t>(Kernel(__NR_getegid))) {}

  // Returns 0 in a call's process.
  int Serve();

 private:
  bool StartCall(int socket);
  void BecomeCall(int socket) const;
  void Reap();

  ServeOptions options_;
  uint32_t user_;
  uint32_t group_;
  RunningCall calls_[kMaxCalls];
};

// What a call keeps between its two visits here.
struct WaitingCall {
  int socket = -1;
  Sizes sizes{};
};
WaitingCall waiting_call;

[[noreturn]] void Exit(int code) {
  for (;;) Kernel(__NR_exit_group, code);
}

void Send(int socket, const Reply& reply, int pidfd) {
  RightsBuffer<1> rights{{sizeof(ControlHeader) + sizeof(int), kSocketLevel, kRights}, {pidfd, 0}};
  IoVector vector{const_cast<Reply*>(&reply), sizeof reply};
  MessageHeader message{};
  message.vectors = &vector;
  message.vector_count = 1;
  if (pidfd >= 0) {
    message.control = &rights;
    message.control_length = sizeof rights;
  }
  Kernel(__NR_sendmsg, socket, &message, kNoSignal);
}

void SendFailure(int socket, const Failure& failure) {
  Reply reply{};
  reply.kind = ReplyKind::kFailed;
  reply.error = failure.error;
  reply.wall = static_cast<uint32_t>(failure.wall);
  for (size_t i = 0; i + 1 < sizeof reply.step && failure.step[i] != '\0'; ++i) {
    reply.step[i] = failure.step[i];
  }
  Send(socket, reply, -1);
}

// One message of just this form; ends the process when the other side is gone.
template <int N, typename Message>
bool Receive(int socket, Message& content, int* fds) {
  RightsBuffer<N> rights{};
  IoVector vector{&content, sizeof content};
  MessageHeader message{};
  message.vectors = &vector;
  message.vector_count = 1;
  message.control = &rights;
  message.control_length = sizeof rights;
  long n = 0;
  do {
    n = Kernel(__NR_recvmsg, socket, &message, kCloexecFds);
  } while (n == kInterrupted);
  if (n <= 0) Exit(0);
  const size_t wanted = sizeof(ControlHeader) + N * sizeof(int);
  if (n != sizeof content || message.control_length < wanted || rights.header.length != wanted) {
    return false;
  }
  for (int i = 0; i < N; ++i) fds[i] = rights.fds[i];
  return true;
}

[[noreturn]] void GiveUp(int socket, const Failure& failure) {
  SendFailure(socket, failure);
  Exit(125);
}

// Only quicker than page by page, so a kernel that cannot need not.
void CopyWritten(const ServeOptions& options) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  constexpr long kSelf = -10'000;     // PIDFD_SELF_THREAD, which process_madvise knows from 6.15 on
  constexpr uint32_t kMost = 1024;    // UIO_MAXIOV
  for (uint32_t at = 0; at < options.written_count; at += kMost) {
    const uint32_t left = options.written_count - at;
    const long done = Kernel(__NR_process_madvise, kSelf, options.written + size_t{2} * at,
                             left < kMost ? left : kMost, kPopulateWrite, 0);
    if (done < 0) return;
  }
}

void Zygote::BecomeCall(int socket) const {
  Kernel(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  Kernel(__NR_setsid);
  const uint64_t no_signals = 0;
  Kernel(__NR_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  // It may neither take requests of the zygote's nor keep the sockets of other calls.
  Kernel(__NR_close, options_.control);
  for (const RunningCall& call : calls_) {
    if (call.pid != 0) Kernel(__NR_close, call.socket);
  }
  if (!LeftOut(options_, CallWall::kUtsNamespace)) Kernel(__NR_sethostname, "call", 4);
  waiting_call.socket = socket;
  CopyWritten(options_);
  const Failure failure = PrepareNamespaces(options_, user_, group_, waiting_call.sizes);
  if (failure.error != 0) GiveUp(socket, failure);
}

// True in the child.
bool Zygote::StartCall(int socket) {
  RunningCall* place = nullptr;
  for (RunningCall& call : calls_) {
    if (call.pid == 0) place = &call;
  }
  if (place == nullptr) {
    SendFailure(socket, {CallWall::kResourceLimits, 11, "start a call: too many at once"});
    Kernel(__NR_close, socket);
    return false;
  }
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = NamespaceFlags(options_) | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  // libc keeps the thread's id at this address and clears it as other threads of the child expect.
  uint64_t thread_id_address = 0;
  if (Kernel(__NR_prctl, PR_GET_TID_ADDRESS, &thread_id_address, 0, 0, 0) == 0 &&
      thread_id_address != 0) {
    arguments.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    arguments.child_tid = thread_id_address;
  }
  const long pid = Kernel(__NR_clone3, &arguments, sizeof arguments);
  if (pid == 0) {
    BecomeCall(socket);
    return true;
  }
  if (pid < 0) {
    SendFailure(socket,
                {CallWall::kUserNamespace, static_cast<int>(-pid), "clone3 with new namespaces"});
    Kernel(__NR_close, socket);
    return false;
  }
  Reply reply{};
  reply.kind = ReplyKind::kStarted;
  Send(socket, reply, pidfd);
  Kernel(__NR_close, pidfd);
  *place = {static_cast<int>(pid), socket};
  return false;
}

uint64_t Nanoseconds(const __kernel_old_timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

void Zygote::Reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const long pid = Kernel(__NR_wait4, -1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    for (RunningCall& call : calls_) {
      if (call.pid != pid) continue;
      Reply reply{};
      reply.kind = ReplyKind::kEnded;
      reply.status = status;
      reply.cpu_ns = Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime);
      reply.max_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
      Send(call.socket, reply, -1);
      Kernel(__NR_close, call.socket);
      call = {};
    }
  }
}

int Zygote::Serve() {
  const uint64_t children = uint64_t{1} << (SIGCHLD - 1);
  Kernel(__NR_rt_sigprocmask, SIG_BLOCK, &children, nullptr, sizeof children);
  const long ended = Kernel(__NR_signalfd4, -1, &children, sizeof children, O_CLOEXEC);
  if (ended < 0) return static_cast<int>(ended);
  for (;;) {
    Poll events[2] = {{options_.control, POLLIN, 0}, {static_cast<int>(ended), POLLIN, 0}};
    const long ready = Kernel(__NR_ppoll, events, 2, nullptr, nullptr, 0);
    if (ready < 0 && ready != kInterrupted) return static_cast<int>(ready);
    if (events[1].revents != 0) {
      char info[128];
      Kernel(__NR_read, ended, info, sizeof info);
      Reap();
    }
    if (events[0].revents == 0) continue;
    ForkRequest request{};
    int socket = -1;
    if (Receive<1>(options_.control, request, &socket) && StartCall(socket)) return 0;
  }
}

// Comes back walled in.
void Enter(const ServeOptions& options) {
  int socket = waiting_call.socket;
  CallRequest request{};
  int fds[kRequestFds];
  if (!Receive<kRequestFds>(socket, request, fds)) {
    GiveUp(socket, {CallWall::kCleanStart, 22, "read the call's request"});
  }
  Failure failure = PlaceDescriptors(options, fds, socket);
  if (failure.error != 0) GiveUp(socket, failure);
  socket = kSetUpSocketFd;
  failure = PutUpWalls(options, request, waiting_call.sizes);
  if (failure.error != 0) GiveUp(socket, failure);
  // The filter lets no message through to this socket; a failure after it ends the process.
  Reply entered{};
  entered.kind = ReplyKind::kEntered;
  Send(socket, entered, -1);
  failure = LoadFilter(options);
  if (failure.error != 0) GiveUp(socket, failure);
  Kernel(__NR_close, socket);
}

}  // namespace
}  // namespace caisson::isolate::native

extern "C" [[gnu::visibility("default")]] int caisson_serve(
    const caisson::isolate::native::ServeOptions* options) {
  return caisson::isolate::native::Zygote(*options).Serve();
}

// A plain fork, for a rehearsal of trusted code.
extern "C" [[gnu::visibility("default")]] long caisson_fork() {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  return caisson::isolate::native::Kernel(__NR_clone3, &arguments, sizeof arguments);
}

extern "C" [[gnu::visibility("default")]] void caisson_enter(
    const caisson::isolate::native::ServeOptions* options) {
  caisson::isolate::native::Enter(*options);
}

// What the compiler may call although there is no libc.
extern "C" void* memset(void* target, int byte, size_t size) {
  auto* at = static_cast<volatile unsigned char*>(target);
  while (size-- != 0) *at++ = static_cast<unsigned char>(byte);
  return target;
}
extern "C" void* memcpy(void* target, const void* source, size_t size) {
  auto* to = static_cast<volatile unsigned char*>(target);
  const auto* from = static_cast<const unsigned char*>(source);
  while (size-- != 0) *to++ = *from++;
  return target;
}
