// SPDX-License-Identifier: Apache-2.0
#include "egress/gate_process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "egress/gate_channel.h"
#include "errors/egress.h"
#include "jail/spawn.h"
#include "os/cgroup.h"
#include "os/cgroup_reaper.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kChannelBytes = 1u << 20;
constexpr std::size_t kMaxEvents = 8192;  // not yet handled
constexpr int kBacklog = 1024;
constexpr int kQuestionBytes = 4 << 20;  // of all machines, not yet read
constexpr std::uint64_t kMaxThreads = 4;
constexpr Milliseconds kPatienceForPorts{2000};
constexpr Milliseconds kFirstPause{50};
constexpr Milliseconds kLongestPause{5000};
constexpr std::chrono::seconds kStableAfter{30};

std::unexpected<Status> NotRunning(const std::string& why) {
  return Fail(errors::kEgressGateFailed,
              "The egress gate, which enforces rules by host name, does not run: " + why +
                  ". Rules by name open nothing until it does; `caisson doctor` checks the host.");
}

// Bound in the network namespace of the calling thread.
Result<os::UniqueFd> Bind(int type, std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return os::SyscallError("socket for the egress gate");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (type == SOCK_DGRAM) {
    ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    // Less where the host allows no more: then a flood costs the others some questions.
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kQuestionBytes,
                     sizeof kQuestionBytes) != 0) {
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kQuestionBytes, sizeof kQuestionBytes);
    }
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (type == SOCK_STREAM && ::listen(fd.get(), kBacklog) != 0)) {
    return os::SyscallError("bind port " + std::to_string(port) + " for the egress gate");
  }
  return fd;
}

using Sockets = std::array<os::UniqueFd, kGateSockets>;

Result<std::vector<os::UniqueFd>> Copies(const Sockets& sockets) {
  std::vector<os::UniqueFd> copies;
  for (const os::UniqueFd& socket : sockets) {
    copies.emplace_back(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
    if (!copies.back().valid()) return os::SyscallError("copy a descriptor");
  }
  return copies;
}

std::vector<GateWall> Merged(const std::vector<jail::WallReport>& outer,
                             const std::vector<GateWall>& inner) {
  std::vector<GateWall> walls = inner;
  for (const jail::WallReport& each : outer) {
    GateWall wall{each.name, each.stands, each.reason};
    // It must be where the packets are; the packet filter there says what it may send.
    if (each.name == jail::InfoOf(jail::Wall::kNetworkNamespace).name) {
      wall.reason = "in that of the gateway";
    }
    walls.push_back(std::move(wall));
  }
  return walls;
}

class Process final : public GateProcess {
 public:
  Process(const GateOptions& options, GateEvents& events) : options_(options), events_(events) {}
  ~Process() override;

  Result<void> Begin();
  Result<void> SetMachine(std::uint32_t address, std::uint64_t generation,
                          std::span<const NameRule> rules) override;
  Result<void> Forget(std::uint32_t address) override;
  std::vector<GateWall> walls() const override;
  int pid() const override;

 private:
  struct Wish {
    std::uint64_t generation = 0;
    std::vector<NameRule> rules;
    std::uint64_t applied = 0;  // by the gate that runs now
  };
  // A gate that runs.
  struct Running {
    jail::Jailed jailed;
    GateChannel channel;
  };
  struct Event {
    std::uint64_t gate = 0;
    GateMessage message;
  };

  void Keep();  // the thread that the gate is a child of
  Result<void> Prepare();
  Result<void> BindAll();
  Result<Running> StartGate();
  Result<GateReady> AwaitReady(Running& running);
  Result<void> Serve(Running& running);
  Result<void> Exchange(Running& running);
  Result<void> TakeAll(Running& running);
  Result<void> Take(GateMessage message);
  void Handle();  // the thread that events are handled on
  void Post(GateMessage message);
  void Wake() const;
  bool Pause(Milliseconds time);
  bool stopping() const;
  Result<void> AwaitApplied(std::uint32_t address, std::uint64_t generation);

  os::CgroupReaper reaper_;  // declared first: ends after the gate and its groups have gone
  const GateOptions options_;
  GateEvents& events_;
  os::UniqueFd wake_;
  Sockets sockets_;

  mutable std::mutex mutex_;  // all below
  std::condition_variable changed_;
  bool stop_ = false;
  bool restart_ = false;
  std::uint64_t gate_ = 0;  // counts those that were started
  std::optional<Result<void>> started_;
  Status last_failure_{errors::kEgressGateFailed, "it has not been started"};
  std::map<std::uint32_t, Wish> wishes_;
  std::map<std::uint32_t, bool> forgotten_;  // and whether the gate has said so
  std::vector<GateMessage> outbox_;
  std::deque<Event> inbox_;
  std::vector<GateWall> walls_;
  int pid_ = 0;

  std::thread keeper_;
  std::thread handler_;
};

Process::~Process() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (wake_.valid()) Wake();
  if (keeper_.joinable()) keeper_.join();
  if (handler_.joinable()) handler_.join();
}

void Process::Wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

bool Process::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

Result<void> Process::Begin() {
  CAISSON_ASSIGN(wake_, os::MakeEventFd());
  (void)os::Cgroup::Sweep();  // of one that was killed together with its helper and their reaper
  CAISSON_ASSIGN(reaper_, os::CgroupReaper::Start());
  keeper_ = std::thread([this] { Keep(); });
  handler_ = std::thread([this] { Handle(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return started_.has_value(); });
  return *started_;
}

Result<void> Process::Prepare() {
  if (::setns(options_.namespace_fd, CLONE_NEWNET) != 0) {
    return os::SyscallError("enter the gateway's namespace");
  }
  // The gate of a helper that was killed just now ends within moments, and lets go of them.
  const Clock::time_point deadline = Clock::now() + kPatienceForPorts;
  for (;;) {
    auto bound = BindAll();
    if (bound || Clock::now() > deadline || !Pause(kFirstPause)) return bound;
  }
}

Result<void> Process::BindAll() {
  CAISSON_ASSIGN(sockets_[0], Bind(SOCK_DGRAM, options_.names_port));
  CAISSON_ASSIGN(sockets_[1], Bind(SOCK_STREAM, options_.names_port));
  CAISSON_ASSIGN(sockets_[2], Bind(SOCK_STREAM, options_.proxy_port));
  return {};
}

void Process::Keep() {
  Result<void> prepared = Prepare();
  Milliseconds pause = kFirstPause;
  for (bool first = true; !stopping(); first = false) {
    const Clock::time_point begun = Clock::now();
    auto running = prepared ? StartGate() : Result<Running>(std::unexpected(prepared.error()));
    {
      const std::lock_guard lock(mutex_);
      if (!running) last_failure_ = running.error();
      if (first) started_ = running ? Result<void>() : std::unexpected(running.error());
    }
    changed_.notify_all();
    if (first && !running) return;
    if (running) {
      const auto ended = Serve(*running);
      running->jailed.process.Kill();  // before anybody is told that it holds to nothing any more
      (void)running->jailed.process.Wait(std::chrono::seconds(5));
      const std::lock_guard lock(mutex_);
      pid_ = 0;
      if (!ended) last_failure_ = ended.error();
      for (auto& [address, wish] : wishes_) wish.applied = 0;
      for (auto& [address, done] : forgotten_) done = true;  // with the process
    }
    changed_.notify_all();
    if (Clock::now() - begun > kStableAfter) pause = kFirstPause;
    if (!Pause(pause)) return;
    pause = std::min(pause * 2, kLongestPause);
  }
}

// False when it is time to end.
bool Process::Pause(Milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return stop_; });
  return !stop_;
}

Result<Process::Running> Process::StartGate() {
  CAISSON_ASSIGN(os::FdPair pair, os::MakeSocketPair(kChannelBytes));
  const jail::SpawnOptions spawn{
      .executable = options_.executable,
      .arguments = options_.arguments,
      .channel = pair.second.get(),
      .limits = {.memory_bytes = options_.memory_bytes, .pids = kMaxThreads},
      .leave_out = {.walls = {jail::Wall::kNetworkNamespace}}};
  auto jailed = jail::Spawn(spawn);
  if (!jailed) return NotRunning(jailed.error().message);
  pair.second.Reset();
  Running running{*std::move(jailed), GateChannel(std::move(pair.first))};
  CAISSON_ASSIGN(const GateReady ready, AwaitReady(running));
  CAISSON_ASSIGN(std::vector<os::UniqueFd> sockets, Copies(sockets_));
  running.channel.Queue(GateConfigure{.resolvers = options_.resolvers}, std::move(sockets));
  const std::lock_guard lock(mutex_);
  ++gate_;
  restart_ = false;
  walls_ = Merged(running.jailed.walls, ready.walls);
  pid_ = running.jailed.process.pid();
  outbox_.clear();
  inbox_.clear();
  for (auto& [address, done] : forgotten_) done = true;  // it has never heard of them
  for (const auto& [address, wish] : wishes_) {
    running.channel.Queue(
        GateMachine{.address = address, .generation = wish.generation, .rules = wish.rules});
  }
  return running;
}

Result<GateReady> Process::AwaitReady(Running& running) {
  const Clock::time_point deadline = Clock::now() + options_.patience;
  for (;;) {
    auto message = running.channel.Next();
    if (!message) return std::unexpected(message.error());
    if (*message) {
      if (auto* ready = std::get_if<GateReady>(&**message)) return std::move(*ready);
      if (const auto* failed = std::get_if<GateFailed>(&**message)) {
        return NotRunning(failed->message);
      }
      return NotRunning("it does not speak the protocol");
    }
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    pollfd event{running.channel.fd(), POLLIN, 0};
    if (left <= 0) return NotRunning("it was not ready in time");
    if (::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 100))) <= 0) {
      if (stopping()) return NotRunning("the helper ends");
      continue;
    }
    CAISSON_ASSIGN(const bool open, running.channel.Receive());
    if (!open) {
      const auto status = running.jailed.process.Wait(std::chrono::seconds(2));
      return NotRunning("it " + (status ? os::ToText(*status) : "closed its channel"));
    }
  }
}

Result<void> Process::Serve(Running& running) {
  CAISSON_TRY(TakeAll(running));  // what came right behind "ready"
  while (!stopping()) {
    CAISSON_TRY(Exchange(running));
  }
  return {};
}

// Sends what there is to send, waits, takes what comes.
Result<void> Process::Exchange(Running& running) {
  std::vector<GateMessage> outgoing;
  {
    const std::lock_guard lock(mutex_);
    if (restart_) return NotRunning("it did not answer in time and was ended");
    outgoing = std::exchange(outbox_, {});
  }
  for (const GateMessage& message : outgoing) running.channel.Queue(message);
  CAISSON_TRY(running.channel.Send());
  const short wanted = running.channel.waiting() > 0 ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> events = {pollfd{running.channel.fd(), wanted, 0},
                                  pollfd{wake_.get(), POLLIN, 0}};
  if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) {
    return os::SyscallError("poll the egress gate");
  }
  std::uint64_t count = 0;
  if (events[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
  if (events[0].revents == 0) return {};
  CAISSON_ASSIGN(const bool open, running.channel.Receive());
  CAISSON_TRY(TakeAll(running));
  if (open) return {};
  const auto status = running.jailed.process.Wait(std::chrono::seconds(2));
  return NotRunning("it " + (status ? os::ToText(*status) : "closed its channel"));
}

Result<void> Process::TakeAll(Running& running) {
  if (!running.channel.TakeDescriptors().empty()) {
    return NotRunning("it sent descriptors, which it must not");
  }
  for (;;) {
    CAISSON_ASSIGN(auto message, running.channel.Next());
    if (!message) return {};
    CAISSON_TRY(Take(*std::move(message)));
  }
}

Result<void> Process::Take(GateMessage message) {
  const std::lock_guard lock(mutex_);
  if (const auto* applied = std::get_if<GateApplied>(&message)) {
    if (applied->generation == 0) {
      if (const auto found = forgotten_.find(applied->address); found != forgotten_.end()) {
        found->second = true;
      }
    } else if (const auto found = wishes_.find(applied->address); found != wishes_.end()) {
      found->second.applied = applied->generation;
    }
    changed_.notify_all();
    return {};
  }
  const bool is_pin = std::holds_alternative<GatePin>(message);
  if (!is_pin && !std::holds_alternative<GateDenial>(message) &&
      !std::holds_alternative<GateCounters>(message)) {
    return NotRunning("it broke the protocol");
  }
  // A gate that floods us is cut short; what it waits for fails in its own time.
  if (inbox_.size() >= kMaxEvents) return {};
  inbox_.push_back({gate_, std::move(message)});
  changed_.notify_all();
  return {};
}

void Process::Handle() {
  for (;;) {
    Event event;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !inbox_.empty(); });
      if (stop_) return;
      event = std::move(inbox_.front());
      inbox_.pop_front();
    }
    if (const auto* pin = std::get_if<GatePin>(&event.message)) {
      auto opened = events_.Pin(*pin);
      const std::lock_guard lock(mutex_);
      if (event.gate != gate_) continue;  // the one that asked is gone
      outbox_.emplace_back(GatePinned{.id = pin->id, .addresses = std::move(opened)});
      Wake();
    } else if (const auto* denial = std::get_if<GateDenial>(&event.message)) {
      events_.Denied(*denial);
    } else if (const auto* counters = std::get_if<GateCounters>(&event.message)) {
      events_.Counted(*counters);
    }
  }
}

Result<void> Process::SetMachine(std::uint32_t address, std::uint64_t generation,
                                 std::span<const NameRule> rules) {
  {
    const std::lock_guard lock(mutex_);
    forgotten_.erase(address);
    Wish& wish = wishes_[address];
    wish = {.generation = generation, .rules = {rules.begin(), rules.end()}, .applied = 0};
    outbox_.emplace_back(
        GateMachine{.address = address, .generation = generation, .rules = wish.rules});
  }
  Wake();
  return AwaitApplied(address, generation);
}

Result<void> Process::Forget(std::uint32_t address) {
  {
    const std::lock_guard lock(mutex_);
    if (wishes_.erase(address) == 0) return {};
    forgotten_[address] = false;
    outbox_.emplace_back(GateForget{.address = address});
  }
  Wake();
  return AwaitApplied(address, 0);
}

Result<void> Process::AwaitApplied(std::uint32_t address, std::uint64_t generation) {
  std::unique_lock lock(mutex_);
  const auto holds = [&] {
    if (stop_) return true;
    if (generation == 0) {
      const auto found = forgotten_.find(address);
      return found == forgotten_.end() || found->second;
    }
    const auto found = wishes_.find(address);
    return found == wishes_.end() || found->second.generation != generation ||
           found->second.applied == generation;
  };
  const bool held = changed_.wait_for(lock, options_.patience, holds);
  if (generation == 0) forgotten_.erase(address);
  if (held) return {};
  restart_ = true;
  Wake();
  if (generation == 0) return {};  // it is ended, and the machine is not among those it gets anew
  return NotRunning(last_failure_.message);
}

std::vector<GateWall> Process::walls() const {
  const std::lock_guard lock(mutex_);
  return walls_;
}

int Process::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

}  // namespace

Result<std::unique_ptr<GateProcess>> GateProcess::Start(const GateOptions& options,
                                                        GateEvents& events) {
  auto process = std::make_unique<Process>(options, events);
  if (auto begun = process->Begin(); !begun) return Fail(std::move(begun).error());
  return process;
}

}  // namespace caisson::egress
