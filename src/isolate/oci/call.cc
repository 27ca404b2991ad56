// SPDX-License-Identifier: Apache-2.0
#include "isolate/oci/call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "errors/jail.h"
#include "errors/oci.h"
#include "isolate/job_file.h"
#include "os/process.h"
#include "os/syscall_error.h"

namespace caisson::isolate::oci {
namespace {

namespace machine_oci = machine::oci;
using machine_oci::Container;
using machine_oci::ContainerStart;

constexpr std::size_t kKeptWords = 1000;
constexpr std::size_t kMostTrusted = 64u << 20;
constexpr std::chrono::minutes kTrustedTime{2};

std::unexpected<Status> NotStarted(const Container& container, const std::string& words) {
  const auto& end = container.end();
  const std::string how = end ? os::ToText(end->status) : "has not ended";
  return Fail(errors::kOciFailed, "the container did not start: its runtime or its interpreter " +
                                      how + (words.empty() ? "" : ", and said: " + words));
}

// Standard error is the container runtime's and the harness's until this, which the harness writes
// just before it lets the script in (caisson_container.py).
constexpr std::string_view kScriptBegins{"\0caisson: the script begins\0\n", 29};

class StartingSink final : public ScriptSink {
 public:
  explicit StartingSink(ScriptSink& sink) : sink_(sink) {}
  bool Take(const ScriptMessage& message) override {
    if (begun_ || message.kind != MessageKind::kStderr) return sink_.Take(message);
    words_ += message.text;
    const std::size_t mark = words_.find(kScriptBegins);
    begun_ = mark != std::string::npos;
    if (!begun_) {
      if (words_.size() > 2 * kKeptWords) words_.erase(0, words_.size() - kKeptWords);
      return true;
    }
    const std::string rest = words_.substr(mark + kScriptBegins.size());
    words_.resize(mark);
    ScriptMessage own = message;
    own.text = rest;
    return rest.empty() || sink_.Take(own);
  }
  std::string LastWords() const {
    return words_.substr(words_.size() - std::min(kKeptWords, words_.size()));
  }

 private:
  ScriptSink& sink_;
  bool begun_ = false;
  std::string words_;
};

Result<void> DoNotBlock(const os::UniqueFd& fd) {
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return os::SyscallError("set O_NONBLOCK");
  return {};
}

struct Pipes {
  GuestStreams ours;
  os::UniqueFd channel, out, err;  // the container's
};

Result<Pipes> MakePipes(bool separate_stdout) {
  Pipes pipes;
  CAISSON_ASSIGN(os::FdPair channel, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair err, os::MakePipe());
  pipes.ours.channel = std::move(channel.first);
  pipes.ours.err = std::move(err.first);
  pipes.channel = std::move(channel.second);
  pipes.err = std::move(err.second);
  CAISSON_TRY(DoNotBlock(pipes.ours.channel));
  CAISSON_TRY(DoNotBlock(pipes.ours.err));
  if (!separate_stdout) return pipes;
  CAISSON_ASSIGN(os::FdPair out, os::MakePipe());
  pipes.ours.out = std::move(out.first);
  pipes.out = std::move(out.second);
  CAISSON_TRY(DoNotBlock(pipes.ours.out));
  return pipes;
}

using Clock = std::chrono::steady_clock;

// A script that has reported.
constexpr std::chrono::seconds kEndsWithin{1};

class Call final : public Supervision {
 public:
  Call(Container container, GuestStreams streams, const ScriptJob& job, StartingSink& sink,
       machine_oci::RuntimeKind kind)
      : Supervision(std::move(streams), job, sink),
        container_(std::move(container)),
        sink_(sink),
        shows_signals_(kind == machine_oci::RuntimeKind::kRunc),
        partly_killed_(kind == machine_oci::RuntimeKind::kRunsc) {}

  Result<CallResult> Run(const std::stop_token& stop);

 private:
  int EventFd() const override { return container_.EventFd(); }
  bool HandleEvent() override { return container_.HandleEvent(); }
  std::optional<std::chrono::nanoseconds> CpuNow() const override { return container_.CpuNow(); }
  std::uint64_t MemoryPeak() const override { return container_.PeakReservedMemory(); }
  // The kernel may end a part of gVisor and leave the rest waiting for it.
  std::chrono::milliseconds LookEvery() const override {
    return std::chrono::milliseconds(partly_killed_ ? 200 : 60'000);
  }
  void Look() override {
    if (partly_killed_ && container_.RanOutOfMemory()) EndByMemory();
  }
  void HandleOtherFrame(const ChannelFrame& frame) override;
  void AwaitEnd();
  void Explain();

  Container container_;
  StartingSink& sink_;
  bool entered_ = false;
  bool shows_signals_;
  bool partly_killed_;
  std::optional<std::string> failure_;
};

void Call::HandleOtherFrame(const ChannelFrame& frame) {
  // From now on it would be the script's word.
  if (entered_) return Supervision::HandleOtherFrame(frame);
  if (frame.kind == kEnteredFrame) {
    entered_ = true;
    return;
  }
  failure_ = std::string(frame.payload.substr(0, kKeptWords));
  End(Fault::kKilled, *failure_);
}

// Only its end tells what a short script used, and when an engine has passed on all that was said.
void Call::AwaitEnd() {
  const auto until = Clock::now() + kEndsWithin;
  bool goes_on = !container_.end();
  while (goes_on && Clock::now() < until) {
    pollfd event{container_.EventFd(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (::poll(&event, 1, static_cast<int>(left.count())) > 0) goes_on = container_.HandleEvent();
  }
}

void Call::Explain() {
  if (ended()) return;
  const auto& how = container_.end();
  if (!how) return End(Fault::kKilled, "the container was lost; results delivered before it stand");
  if (container_.RanOutOfMemory()) return EndByMemory();
  if (how->status.signal != 0) return EndBySignal(how->status.signal);
  const int code = how->status.code;
  if (!shows_signals_ && code > 128 && code < 128 + SIGRTMIN) return EndBySignal(code - 128);
  EndByExit(code);
}

Result<CallResult> Call::Run(const std::stop_token& stop) {
  Supervise(stop);
  if (failure_) {
    return Fail(errors::kJailUnavailable,
                "a wall of the container does not stand: " + *failure_ +
                    ". Nothing of the script has run; use another container runtime.");
  }
  if (!ended() && !entered_) return NotStarted(container_, sink_.LastWords());
  Explain();
  outcome().usage.wall = Clock::now() - begin();
  if (reported()) AwaitEnd();
  // The harness has flushed the streams before it reported.
  Drain();
  outcome().usage.memory_bytes = container_.PeakMemory();
  outcome().cpu =
      container_.end() ? container_.end()->cpu : container_.CpuNow().value_or(cpu_used());
  return CallResult{std::move(outcome()), std::move(container_)};
}

}  // namespace

Result<CallResult> RunCall(machine_oci::State& state, ContainerStart start, std::string_view head,
                           const ScriptJob& job, ScriptSink& sink, const std::stop_token& stop) {
  const bool separate = machine_oci::PassesDescriptors(start.runtime->kind);
  CAISSON_ASSIGN(const os::UniqueFd input, MakeJobFile(head, job));
  CAISSON_ASSIGN(Pipes pipes, MakePipes(separate));
  start.descriptors = {input.get(), separate ? pipes.out.get() : pipes.channel.get(),
                       pipes.err.get(), separate ? pipes.channel.get() : -1};
  CAISSON_ASSIGN(Container container, Container::Start(state, start));
  for (os::UniqueFd* fd : {&pipes.channel, &pipes.out, &pipes.err}) fd->Reset();
  StartingSink starting(sink);
  return Call(std::move(container), std::move(pipes.ours), job, starting, start.runtime->kind)
      .Run(stop);
}

Result<std::string> RunTrusted(machine_oci::State& state, ContainerStart start,
                               std::string_view input) {
  const os::UniqueFd file(::memfd_create("caisson-input", MFD_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return os::SyscallError("write the input of a container");
  }
  CAISSON_ASSIGN(Pipes pipes, MakePipes(false));
  start.descriptors = {file.get(), pipes.channel.get(), pipes.err.get(), -1};
  CAISSON_ASSIGN(Container container, Container::Start(state, start));
  for (os::UniqueFd* fd : {&pipes.channel, &pipes.err}) fd->Reset();
  std::string output;
  std::string words;
  const auto until = std::chrono::steady_clock::now() + kTrustedTime;
  std::array<char, 65536> chunk;
  const auto take = [&chunk](os::UniqueFd& fd, std::string& into, std::size_t most) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return fd.Reset();
    into.append(chunk.data(), std::min(static_cast<std::size_t>(n), most - into.size()));
  };
  bool running = true;
  while ((running || pipes.ours.channel.valid() || pipes.ours.err.valid()) &&
         std::chrono::steady_clock::now() < until) {
    std::array<pollfd, 3> events = {{{pipes.ours.channel.get(), POLLIN, 0},
                                     {pipes.ours.err.get(), POLLIN, 0},
                                     {running ? container.EventFd() : -1, POLLIN, 0}}};
    (void)::poll(events.data(), events.size(), 1000);
    if (events[0].revents != 0) take(pipes.ours.channel, output, kMostTrusted);
    if (events[1].revents != 0) take(pipes.ours.err, words, kKeptWords);
    if (events[2].revents != 0) running = container.HandleEvent();
  }
  const auto& end = container.end();
  if (end && end->started && end->status == os::ExitStatus{}) return output;
  return NotStarted(container, words);
}

}  // namespace caisson::isolate::oci
