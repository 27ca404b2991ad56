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
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/channel_pump.h"
#include "agent/frames.h"
#include "agent/guest/loop.h"
#include "agent/messages.h"
#include "errors/machine.h"
#include "json/reader.h"
#include "machine/microvm/agent_call.h"
#include "machine/microvm/boot_files.h"
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

class Keeper {
 public:
  Keeper(const Plan& plan, Monitor& monitor)
      : plan_(plan),
        monitor_(monitor),
        waits_(plan.waits),
        boot_timer_(loop_, [this] { BootFailed(); }),
        greet_timer_(loop_, [this] { GreetAgain(); }),
        monitor_timer_(loop_, [this] {
          monitor_.Tidy();
          monitor_timer_.Set(kMonitorPause);
        }) {}

  [[noreturn]] void Run() {
    Watch();
    Listen(control_listener_, kControlFd, [this](os::UniqueFd fd) { TakeHelper(std::move(fd)); });
    if (!plan_.trial) boot_timer_.Set(milliseconds(plan_.boot_patience_ms));
    CheckDisk();
    started_ = monitor_.Start(loop_, [this](os::UniqueFd stream, agent::StreamKind kind) {
      Take(std::move(stream), kind);
    });
    if (started_) started_ = GiveDisk();
    if (started_) monitor_timer_.Set(kMonitorPause);
    loop_.Run();
  }

 private:
  void Watch();
  // The whole of what belongs together ends with the first process.
  [[noreturn]] void End() { ::_exit(0); }
  void MonitorEnded();
  void AnswerTrial();
  void CheckDisk();
  Result<void> GiveDisk();

  void Take(os::UniqueFd stream, agent::StreamKind kind);
  void Greet();
  void GreetAgain();
  void LoseAgent();
  void BeginRenewal();
  void Renew();
  void Rehearse();
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
  void Perform(const Request& request, std::string_view text);
  void Begin(std::uint32_t sequence, std::string_view text);
  // To whoever asked with this number, unless another helper has come since.
  void Answer(std::uint32_t sequence, Outcome outcome, const std::string& text = {},
              std::uint64_t nanoseconds = 0);
  void Answer(std::uint32_t sequence, const Result<void>& result) {
    if (result) return Answer(sequence, Outcome::kDone);
    Answer(sequence, OutcomeOf(result.error()), result.error().message);
  }
  void AnswerAwaitAgent();
  void Ask(agent::FrameType type, const std::string& payload, milliseconds patience,
           AgentCall::Done done);

  void Stop(std::uint32_t sequence);
  void FinishStop(std::uint32_t sequence, bool quiet, const std::string& why);
  void AnswerStopped(std::uint32_t sequence);
  void GoOn(std::uint32_t sequence);
  void Save(std::uint32_t sequence);
  void Grow(std::uint32_t sequence, std::uint64_t bytes);

  enum class AgentState : std::uint8_t { kComing, kReady, kSilent };

  Plan plan_;
  Monitor& monitor_;
  bool waits_;  // for its name
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
  std::uint32_t asked_ = 0;                    // the number of the last request
  std::optional<std::uint32_t> awaits_agent_;  // that of who waits
  std::optional<std::uint32_t> awaits_trial_;
  bool monitor_ended_ = false;  // of a trial
  bool stopped_ = false;
  bool quiescing_ = false;  // commands are made to stand still, for a stop that is wanted
  std::string unquiet_;     // why commands may have been at work when it stopped
  bool mounted_ = false;
  bool grows_ = false;  // its file system is smaller than its disk
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
          MonitorEnded();
        }
      });
  signals_->Want(EPOLLIN);
}

void Keeper::MonitorEnded() {
  if (plan_.trial) {
    monitor_ended_ = true;
    return AnswerTrial();
  }
  Answer(asked_, Outcome::kEnded, monitor_.name() + " has ended: " + monitor_.last_words());
  End();
}

// Whether our first program has been reached.
void Keeper::AnswerTrial() {
  if (!monitor_ended_ || !awaits_trial_) return;
  const std::string console = os::ReadSmallFile(kConsoleFile, 1u << 20).value_or("");
  const bool booted = console.find(kTrialWords) != std::string::npos;
  Answer(*awaits_trial_, booted ? Outcome::kDone : Outcome::kFailed,
         booted ? "" : monitor_.name() + " has ended: " + monitor_.last_words());
  End();
}

// --- the disk ---

// It may be larger by now than when the machine, or what it was copied from, was saved.
void Keeper::CheckDisk() {
  struct stat disk{};
  grows_ = !plan_.shares_memory && ::stat(Own("disk.img").c_str(), &disk) == 0 &&
           static_cast<std::uint64_t>(disk.st_size) < plan_.disk_bytes;
}

// What goes on from a template was saved with another disk, whose size it takes this one to have
// until it is told. Once its processors run: a monitor does not have its disks before.
Result<void> Keeper::GiveDisk() {
  const bool is_new = plan_.mounts_disk && !plan_.shares_memory && !plan_.base.empty();
  if (!is_new && !grows_) return {};
  return monitor_.Grow(plan_.disk_bytes);
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
                                 BeginRenewal();
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

void Keeper::BeginRenewal() {
  if (plan_.shares_memory) {
    // A template is saved as it is: whoever goes on from it mounts a disk and renews it.
    boot_timer_.Clear();
    agent_state_ = AgentState::kReady;
    return AnswerAwaitAgent();
  }
  if (!plan_.mounts_disk || mounted_) return Renew();
  Ask(agent::FrameType::kMountDisk,
      agent::Encode(agent::MountDiskRequest{.bytes = plan_.disk_bytes}), kAgentPatience,
      [this](bool answered, const std::string& failure) {
        mounted_ = answered;
        if (answered) return Renew();
        boot_timer_.Clear();
        agent_state_ = AgentState::kSilent;
        agent_failure_ = failure;
        AnswerAwaitAgent();
      });
}

void Keeper::Renew() {
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
        if (waits_) return Rehearse();
        named_ = true;
        GrowThenOpen();
      });
}

// An emulated processor has translated what a first command takes by the time somebody wants one.
// What it is does not matter: it may be missing in the image.
void Keeper::Rehearse() {
  const auto wait = [this](bool, const std::string&) {
    const auto stopped = monitor_.Stop();
    stopped_ = stopped.has_value();
    agent_state_ = stopped ? AgentState::kReady : AgentState::kSilent;
    if (!stopped) agent_failure_ = stopped.error().message;
    AnswerAwaitAgent();
  };
  if (plan_.accelerator != Accelerator::kTcg) return wait(true, "");
  agent::ExecRequest request;
  request.command.argv = {"/bin/true"};
  Ask(agent::FrameType::kExec, agent::Encode(request), kAgentPatience, wait);
}

// Who waited is somebody now. Its agent is sealed by a greeting, and renewed, as that of a copy.
void Keeper::Begin(std::uint32_t sequence, std::string_view text) {
  const auto value = json::Read(text);
  auto plan = value ? PlanFromJson(*value) : std::unexpected(value.error());
  if (!plan) return Answer(sequence, std::unexpected(plan.error()));
  if (!waits_ || !stopped_) return Answer(sequence, Outcome::kFailed, "it does not wait");
  plan_ = *std::move(plan);
  waits_ = stopped_ = false;
  agent_state_ = AgentState::kComing;
  if (auto done = monitor_.GoOn(); !done) return Answer(sequence, done);
  Greet();
  Answer(sequence, Outcome::kDone);
}

void Keeper::GrowThenOpen() {
  const auto open = [this] {
    OpenToAgent();
    AnswerAwaitAgent();
  };
  std::uint64_t bytes = std::exchange(grow_to_, 0);
  if (std::exchange(grows_, false)) bytes = plan_.disk_bytes;
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
  awaits_agent_.reset();
  awaits_trial_.reset();
  helper_ =
      std::make_unique<EventSource>(loop_, std::move(fd), [this](std::uint32_t) { ReadRequest(); });
  helper_->Want(EPOLLIN);
}

void Keeper::ReadRequest() {
  static std::array<char, kMaxRequestBytes> buffer;
  Request request;
  const ssize_t n = ::recv(helper_->fd(), buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < static_cast<ssize_t>(sizeof request)) return loop_.Retire(helper_);
  std::memcpy(&request, buffer.data(), sizeof request);
  Perform(request, {buffer.data() + sizeof request, static_cast<std::size_t>(n) - sizeof request});
}

void Keeper::Answer(std::uint32_t sequence, Outcome outcome, const std::string& text,
                    std::uint64_t nanoseconds) {
  if (helper_ == nullptr || sequence != asked_) return;
  Reply reply;
  reply.outcome = outcome;
  reply.sequence = sequence;
  reply.nanoseconds = nanoseconds;
  text.copy(reply.text, sizeof reply.text - 1);
  (void)!::send(helper_->fd(), &reply, sizeof reply, MSG_NOSIGNAL);
}

void Keeper::AnswerAwaitAgent() {
  if (!awaits_agent_) return;
  const std::uint32_t sequence = *std::exchange(awaits_agent_, std::nullopt);
  if (agent_state_ == AgentState::kReady) return Answer(sequence, Outcome::kDone);
  Answer(sequence, Outcome::kAgentSilent, agent_failure_);
}

void Keeper::Perform(const Request& request, std::string_view text) {
  const std::uint32_t sequence = request.sequence;
  asked_ = sequence;
  if (!started_) {
    Answer(sequence, started_);
    End();
  }
  switch (request.operation) {
    case Operation::kAwaitRunning:
      return Answer(sequence, Outcome::kDone);
    case Operation::kAwaitAgent:
      awaits_agent_ = sequence;
      if (agent_state_ != AgentState::kComing) AnswerAwaitAgent();
      return;
    case Operation::kBegin:
      return Begin(sequence, text);
    case Operation::kAwaitTrial:
      awaits_trial_ = sequence;
      return AnswerTrial();
    case Operation::kStop:
      return Stop(sequence);
    case Operation::kGoOn:
      return GoOn(sequence);
    case Operation::kSave:
      return Save(sequence);
    case Operation::kGrow:
      return Grow(sequence, request.argument);
  }
  Answer(sequence, Outcome::kFailed, "there is no such request");
}

void Keeper::Stop(std::uint32_t sequence) {
  if (stopped_) return AnswerStopped(sequence);
  if (plan_.shares_memory) return FinishStop(sequence, true, "");
  if (agent_state_ != AgentState::kReady) return FinishStop(sequence, false, "it does not answer");
  quiescing_ = true;
  Ask(agent::FrameType::kQuiesce, {}, kQuiescePatience,
      [this, sequence](bool answered, const std::string& why) {
        FinishStop(sequence, answered, why);
      });
}

void Keeper::FinishStop(std::uint32_t sequence, bool quiet, const std::string& why) {
  quiescing_ = false;
  if (const auto done = monitor_.Stop(); !done) return Answer(sequence, done);
  stopped_ = true;
  unquiet_ = quiet ? "" : why;
  AnswerStopped(sequence);
}

void Keeper::AnswerStopped(std::uint32_t sequence) {
  Answer(sequence, unquiet_.empty() ? Outcome::kDone : Outcome::kUnquiet, unquiet_);
}

// Also when a stop is under way that an earlier helper wanted: it must not come after this.
void Keeper::GoOn(std::uint32_t sequence) {
  if (!stopped_ && !quiescing_) return Answer(sequence, Outcome::kDone);
  const bool loses_stream = stopped_ && monitor_.LosesStream();
  if (stopped_) {
    if (const auto done = monitor_.GoOn(); !done) return Answer(sequence, done);
  }
  stopped_ = quiescing_ = false;
  const bool was_ready = agent_state_ == AgentState::kReady;
  if (loses_stream) {
    agent_state_ = AgentState::kComing;
    GreetAgain();
  }
  if (!was_ready) return Answer(sequence, Outcome::kDone);
  if (loses_stream) {
    // Greeted and renewed, its commands go on; that is told then.
    awaits_agent_ = sequence;
    return boot_timer_.Set(kAgentPatience);
  }
  const agent::ThawRequest thaw{.now_ns = Now()};
  Ask(agent::FrameType::kThaw, agent::Encode(thaw), kAgentPatience,
      [this, sequence](bool answered, const std::string& why) {
        if (!answered) return Answer(sequence, Outcome::kAgentSilent, why);
        if (grow_to_ != 0) return Grow(sequence, std::exchange(grow_to_, 0));
        Answer(sequence, Outcome::kDone);
      });
}

// Requires that the machine stands still.
void Keeper::Save(std::uint32_t sequence) {
  if (!stopped_) return Answer(sequence, Outcome::kFailed, "the machine runs");
  const auto begin = Clock::now();
  if (const auto saved = monitor_.Save(); !saved) return Answer(sequence, saved);
  const auto took = std::chrono::nanoseconds(Clock::now() - begin).count();
  Answer(sequence, Outcome::kDone, "", static_cast<std::uint64_t>(took));
}

void Keeper::Grow(std::uint32_t sequence, std::uint64_t bytes) {
  if (const auto grown = monitor_.Grow(bytes); !grown) return Answer(sequence, grown);
  if (stopped_) {
    grow_to_ = bytes;
    return Answer(sequence, Outcome::kDone);
  }
  Ask(agent::FrameType::kGrowDisk, agent::Encode(agent::GrowDiskRequest{.bytes = bytes}),
      kAgentPatience, [this, sequence](bool answered, const std::string& why) {
        if (answered) return Answer(sequence, Outcome::kDone);
        Answer(sequence, Outcome::kAgentSilent, why);
      });
}

}  // namespace

void Keep(const Plan& plan, Monitor& monitor) {
  Keeper keeper(plan, monitor);
  keeper.Run();
}

}  // namespace caisson::machine::microvm
