// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/keeper.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>

#include "agent/channel_pump.h"
#include "agent/frames.h"
#include "agent/guest/loop.h"
#include "agent/messages.h"
#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

using agent::guest::EventSource;
using agent::guest::Loop;
using agent::guest::milliseconds;
using agent::guest::Timer;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAgentPatience{20'000};
// An agent that does not answer in time is a guest's own doing: the machine stops all the same.
constexpr milliseconds kQuiescePatience{10'000};
// After a guest has broken the stream.
constexpr milliseconds kGreetAgain{1'000};
constexpr milliseconds kMonitorPause{5'000};

std::int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::string Own(const char* name) { return std::string(kInsideOwn) + "/" + name; }

Outcome OutcomeOf(const Status& status) {
  if (status.code == errors::kMachineFull) return Outcome::kFull;
  return status.code == errors::kMachineDamaged ? Outcome::kDamaged : Outcome::kFailed;
}

// One operation of the agent that answers kOk or kFailed, over a channel of its own.
class AgentCall {
 public:
  using Done = std::function<void(bool answered, std::string failure)>;
  AgentCall(Loop& loop, os::UniqueFd socket, agent::FrameType type, const std::string& payload,
            milliseconds patience, Done done)
      : loop_(loop),
        timer_(loop, [this] { Finish(false, "it does not answer"); }),
        done_(std::move(done)) {
    const agent::FrameHeader header = agent::MakeFrameHeader(type, payload.size());
    std::string text(header.bytes, agent::kFrameHeaderBytes);
    text += payload;
    (void)!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    source_ =
        std::make_unique<EventSource>(loop, std::move(socket), [this](std::uint32_t) { Read(); });
    source_->Want(EPOLLIN);
    timer_.Set(patience);
  }

 private:
  void Read() {
    const auto room = reader_.Room(4096);
    const ssize_t n = ::read(source_->fd(), room.data(), room.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return Finish(false, "its connection broke");
    reader_.Filled(static_cast<std::size_t>(n));
    agent::Frame frame;
    switch (reader_.Next(frame)) {
      case agent::FrameReader::State::kMore:
        return;
      case agent::FrameReader::State::kBroken:
        return Finish(false, "it says what is no frame");
      case agent::FrameReader::State::kFrame:
        break;
    }
    if (frame.type == agent::FrameType::kOk) return Finish(true, "");
    const auto failure = agent::Decode<agent::Failure>(frame.payload);
    Finish(false, failure ? failure->message : "it answers something else");
  }
  void Finish(bool answered, const std::string& failure) {
    timer_.Clear();
    loop_.Retire(source_);
    if (done_) std::exchange(done_, nullptr)(answered, failure);
  }

  Loop& loop_;
  std::unique_ptr<EventSource> source_;
  agent::FrameReader reader_;
  Timer timer_;
  Done done_;
};

class Keeper {
 public:
  Keeper(const Plan& plan, Monitor& monitor)
      : plan_(plan),
        monitor_(monitor),
        boot_timer_(loop_, [this] { BootFailed(); }),
        greet_timer_(loop_, [this] { GreetAgain(); }),
        monitor_timer_(loop_, [this] {
          monitor_.Tidy();
          monitor_timer_.Set(kMonitorPause);
        }) {}

  [[noreturn]] void Run() {
    Watch();
    Listen(control_listener_, kControlFd, [this](os::UniqueFd fd) { TakeHelper(std::move(fd)); });
    boot_timer_.Set(milliseconds(plan_.boot_patience_ms));
    started_ = monitor_.Start(loop_, [this](os::UniqueFd stream, agent::StreamKind kind) {
      Take(std::move(stream), kind);
    });
    if (started_) monitor_timer_.Set(kMonitorPause);
    loop_.Run();
  }

 private:
  void Watch();
  // The whole of what belongs together ends with the first process.
  [[noreturn]] void End() { ::_exit(0); }

  void Take(os::UniqueFd stream, agent::StreamKind kind);
  void Greet();
  void GreetAgain();
  void LoseAgent();
  void Renew();
  void BootFailed() {
    agent_state_ = AgentState::kSilent;
    agent_failure_ = "the machine's agent did not come up in time";
    AnswerAwaitAgent();
  }

  // --- the agent's connections ---

  void OpenToAgent();
  void GrowThenOpen();

  // --- the helper ---

  using Accept = std::function<void(os::UniqueFd)>;
  void Listen(std::unique_ptr<EventSource>& source, int fd, Accept accept);
  void TakeHelper(os::UniqueFd fd);
  void ReadRequest();
  void Perform(const Request& request);
  void Answer(Outcome outcome, const std::string& text = {}, std::uint64_t nanoseconds = 0);
  void Answer(const Result<void>& result) {
    if (result) return Answer(Outcome::kDone);
    Answer(OutcomeOf(result.error()), result.error().message);
  }
  void AnswerAwaitAgent();
  void Ask(agent::FrameType type, const std::string& payload, milliseconds patience,
           AgentCall::Done done);

  void Stop();
  void GoOn();
  void Save();
  void Grow(std::uint64_t bytes);

  enum class AgentState : std::uint8_t { kComing, kReady, kSilent };

  const Plan plan_;
  Monitor& monitor_;
  Loop loop_;
  Timer boot_timer_;
  Timer greet_timer_;
  Timer monitor_timer_;
  Result<void> started_;
  std::unique_ptr<agent::ChannelPump> pump_;
  std::unique_ptr<EventSource> signals_;
  std::unique_ptr<EventSource> control_listener_;
  std::unique_ptr<EventSource> agent_listener_;
  std::unique_ptr<EventSource> helper_;
  std::unique_ptr<AgentCall> call_;
  AgentState agent_state_ = AgentState::kComing;
  std::string agent_failure_;
  bool awaits_agent_ = false;
  bool stopped_ = false;
  bool named_ = false;
  std::uint64_t grow_to_ = 0;
};

Result<os::FdPair> Pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os::SyscallError("socketpair");
  }
  return os::FdPair{os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

void SetNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

void Keeper::Watch() {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  ::sigaddset(&blocked, SIGPIPE);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  ::sigdelset(&blocked, SIGPIPE);
  signals_ = std::make_unique<EventSource>(
      loop_, os::UniqueFd(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK)),
      [this](std::uint32_t) {
        signalfd_siginfo info{};
        while (::read(signals_->fd(), &info, sizeof info) > 0) continue;
        int status = 0;
        for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
          // One that failed to start has its reason told to the helper first.
          if (!monitor_.HasEnded(pid, status) || !started_) continue;
          if (helper_ != nullptr) {
            Answer(Outcome::kEnded, monitor_.name() + " has ended: " + monitor_.last_words());
          }
          End();
        }
      });
  signals_->Want(EPOLLIN);
}

// --- the agent ---

// With a new stream whatever went through the old one is over.
void Keeper::Take(os::UniqueFd stream, agent::StreamKind kind) {
  SetNonBlocking(stream.get());
  if (pump_ != nullptr) {
    loop_.Dispose(std::make_unique<agent::guest::Retired<agent::ChannelPump>>(std::move(pump_)));
  }
  pump_ = std::make_unique<agent::ChannelPump>(
      loop_, agent::Channels::Side::kHost, std::move(stream),
      agent::PumpCallbacks{.on_greeting =
                               [this](std::uint64_t) {
                                 greet_timer_.Clear();
                                 Renew();
                               },
                           .on_open = {},
                           .on_broken = [this] { LoseAgent(); }},
      kind);
  Greet();
}

void Keeper::Greet() {
  std::uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  pump_->Greet(number);
  if (!boot_timer_.is_set()) boot_timer_.Set(milliseconds(plan_.boot_patience_ms));
  if (monitor_.greeting_patience().count() > 0) greet_timer_.Set(monitor_.greeting_patience());
}

void Keeper::GreetAgain() {
  if (!monitor_.MakeNewStream()) Greet();
}

void Keeper::LoseAgent() {
  agent_state_ = AgentState::kComing;
  const milliseconds patience = monitor_.greeting_patience();
  if (!greet_timer_.is_set()) greet_timer_.Set(patience.count() > 0 ? patience : kGreetAgain);
}

void Keeper::Ask(agent::FrameType type, const std::string& payload, milliseconds patience,
                 AgentCall::Done done) {
  auto pair = Pair();
  if (!pair || pump_ == nullptr || !pump_->greeted())
    return done(false, "there is no connection to it");
  SetNonBlocking(pair->first.get());
  SetNonBlocking(pair->second.get());
  if (!pump_->Add(std::move(pair->first))) return done(false, "it has too many connections");
  call_ = std::make_unique<AgentCall>(loop_, std::move(pair->second), type, payload, patience,
                                      std::move(done));
}

void Keeper::Renew() {
  if (plan_.shares_memory) {
    // A template is saved as it is: whoever goes on from it renews it.
    boot_timer_.Clear();
    agent_state_ = AgentState::kReady;
    return AnswerAwaitAgent();
  }
  agent::RenewRequest request;
  request.now_ns = Now();
  request.entropy.resize(64);
  (void)!::getrandom(request.entropy.data(), request.entropy.size(), 0);
  // Greeted once more, it goes on as who it was.
  if (!named_) request.host_name = plan_.host_name;
  request.machine_id = plan_.machine_id;
  if (!request.host_name.empty()) {
    request.files = {{"/etc/hostname", plan_.host_name + "\n"},
                     {"/etc/hosts", plan_.hosts_file},
                     {"/etc/resolv.conf", plan_.resolv_file}};
  }
  request.address = plan_.address;
  request.mac = plan_.mac;
  request.gateway = plan_.gateway;
  request.gateway_mac = plan_.gateway_mac;
  request.memory_bytes = plan_.memory_bytes;
  request.pids = plan_.pids;
  Ask(agent::FrameType::kRenew, agent::Encode(request), kAgentPatience,
      [this](bool answered, const std::string& failure) {
        boot_timer_.Clear();
        agent_state_ = answered ? AgentState::kReady : AgentState::kSilent;
        agent_failure_ = failure;
        if (!answered) return AnswerAwaitAgent();
        named_ = true;
        GrowThenOpen();
      });
}

// A copy may have a larger disk than what it was copied from.
void Keeper::GrowThenOpen() {
  struct stat disk{};
  const auto open = [this] {
    OpenToAgent();
    AnswerAwaitAgent();
  };
  std::uint64_t bytes = std::exchange(grow_to_, 0);
  if (::stat(Own("disk.img").c_str(), &disk) == 0 &&
      static_cast<std::uint64_t>(disk.st_size) < plan_.disk_bytes) {
    (void)monitor_.Grow(plan_.disk_bytes);
    bytes = plan_.disk_bytes;
  }
  if (bytes == 0) return open();
  Ask(agent::FrameType::kGrowDisk, agent::Encode(agent::GrowDiskRequest{.bytes = bytes}),
      kAgentPatience, [open](bool, const std::string&) { open(); });
}

void Keeper::OpenToAgent() {
  if (agent_listener_ != nullptr) return;
  Listen(agent_listener_, kAgentFd, [this](os::UniqueFd fd) { (void)pump_->Add(std::move(fd)); });
}

// --- the helper ---

void Keeper::Listen(std::unique_ptr<EventSource>& source, int fd, Accept accept) {
  SetNonBlocking(fd);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  source = std::make_unique<EventSource>(
      loop_, os::UniqueFd(fd), [fd, accept = std::move(accept)](std::uint32_t) {
        os::UniqueFd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (connection.valid()) accept(std::move(connection));
      });
  source->Want(EPOLLIN);
}

// The last that comes is the helper that lives.
void Keeper::TakeHelper(os::UniqueFd fd) {
  loop_.Retire(helper_);
  awaits_agent_ = false;
  helper_ =
      std::make_unique<EventSource>(loop_, std::move(fd), [this](std::uint32_t) { ReadRequest(); });
  helper_->Want(EPOLLIN);
}

void Keeper::ReadRequest() {
  Request request;
  const ssize_t n = ::recv(helper_->fd(), &request, sizeof request, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n != sizeof request) return loop_.Retire(helper_);
  Perform(request);
}

void Keeper::Answer(Outcome outcome, const std::string& text, std::uint64_t nanoseconds) {
  if (helper_ == nullptr) return;
  Reply reply;
  reply.outcome = outcome;
  reply.nanoseconds = nanoseconds;
  text.copy(reply.text, sizeof reply.text - 1);
  (void)!::send(helper_->fd(), &reply, sizeof reply, MSG_NOSIGNAL);
}

void Keeper::AnswerAwaitAgent() {
  if (!std::exchange(awaits_agent_, false)) return;
  if (agent_state_ == AgentState::kReady) return Answer(Outcome::kDone);
  Answer(Outcome::kAgentSilent, agent_failure_);
}

void Keeper::Perform(const Request& request) {
  if (!started_) {
    Answer(started_);
    End();
  }
  switch (request.operation) {
    case Operation::kAwaitRunning:
      return Answer(Outcome::kDone);
    case Operation::kAwaitAgent:
      awaits_agent_ = true;
      if (agent_state_ != AgentState::kComing) AnswerAwaitAgent();
      return;
    case Operation::kStop:
      return Stop();
    case Operation::kGoOn:
      return GoOn();
    case Operation::kSave:
      return Save();
    case Operation::kGrow:
      return Grow(request.argument);
  }
  Answer(Outcome::kFailed, "there is no such request");
}

void Keeper::Stop() {
  if (stopped_) return Answer(Outcome::kDone);
  const auto stop = [this](bool, const std::string&) {
    const auto done = monitor_.Stop();
    stopped_ = done.has_value();
    Answer(done);
  };
  if (plan_.shares_memory || agent_state_ != AgentState::kReady) return stop(false, "");
  Ask(agent::FrameType::kQuiesce, {}, kQuiescePatience, stop);
}

void Keeper::GoOn() {
  if (!stopped_) return Answer(Outcome::kDone);
  const bool loses_stream = monitor_.LosesStream();
  if (const auto done = monitor_.GoOn(); !done) return Answer(done);
  stopped_ = false;
  const bool was_ready = agent_state_ == AgentState::kReady;
  if (loses_stream) {
    agent_state_ = AgentState::kComing;
    GreetAgain();
  }
  if (!was_ready) return Answer(Outcome::kDone);
  if (loses_stream) {
    // Greeted and renewed, its commands go on; that is told then.
    awaits_agent_ = true;
    return boot_timer_.Set(kAgentPatience);
  }
  const agent::ThawRequest thaw{.now_ns = Now()};
  Ask(agent::FrameType::kThaw, agent::Encode(thaw), kAgentPatience,
      [this](bool answered, const std::string& why) {
        if (!answered) return Answer(Outcome::kAgentSilent, why);
        if (grow_to_ != 0) return Grow(std::exchange(grow_to_, 0));
        Answer(Outcome::kDone);
      });
}

// Requires that the machine stands still.
void Keeper::Save() {
  if (!stopped_) return Answer(Outcome::kFailed, "the machine runs");
  const auto begin = Clock::now();
  if (const auto saved = monitor_.Save(); !saved) return Answer(saved);
  const auto took = std::chrono::nanoseconds(Clock::now() - begin).count();
  Answer(Outcome::kDone, "", static_cast<std::uint64_t>(took));
}

void Keeper::Grow(std::uint64_t bytes) {
  if (const auto grown = monitor_.Grow(bytes); !grown) return Answer(grown);
  if (stopped_) {
    grow_to_ = bytes;
    return Answer(Outcome::kDone);
  }
  Ask(agent::FrameType::kGrowDisk, agent::Encode(agent::GrowDiskRequest{.bytes = bytes}),
      kAgentPatience, [this](bool answered, const std::string& why) {
        if (answered) return Answer(Outcome::kDone);
        Answer(Outcome::kAgentSilent, why);
      });
}

}  // namespace

void Keep(const Plan& plan, Monitor& monitor) {
  Keeper keeper(plan, monitor);
  keeper.Run();
}

}  // namespace caisson::machine::microvm
