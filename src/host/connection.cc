// SPDX-License-Identifier: Apache-2.0
#include "host/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "errors/host.h"
#include "errors/internal.h"
#include "errors/nodes.h"
#include "os/syscall_error.h"

namespace caisson::host {
namespace {

constexpr std::size_t kReadBytes = 1u << 18;
constexpr std::size_t kMaxLineBytes = 16u << 10;  // of output; a longer line is cut in two
constexpr std::size_t kKeptWords = 4u << 10;      // of the end of its output
constexpr std::chrono::milliseconds kAskInterval{20};
constexpr std::chrono::milliseconds kEndPatience{2'000};

Failure FailureOf(const ErrorMessage& error) {
  using Kind = ErrorMessage::Kind;
  ErrorCode code = errors::kNodesFailed;
  if (error.kind == Kind::kConfig) code = errors::kNodesConfig;
  if (error.kind == Kind::kNotJson) code = errors::kHostNotJson;
  if (error.kind == Kind::kTooLarge) code = errors::kHostTooLarge;
  if (error.kind == Kind::kUnknownType) code = errors::kHostUnknownType;
  std::string message = error.message;
  if (message.empty()) message = error.error_type.empty() ? "the node failed" : error.error_type;
  return {Status{.code = code, .message = std::move(message)}, error.error_type};
}

}  // namespace

Connection::Connection(const ConnectionOptions& options)
    : options_(options), reader_(std::min(options.max_frame_bytes, kMaxFrameBytes)) {}

Connection::~Connection() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (wake_.valid()) Wake();
  if (thread_.joinable()) thread_.join();
}

Result<Hello> Connection::Start() {
  CAISSON_ASSIGN(wake_, os::MakeEventFd());
  try {
    thread_ = std::thread([this] { Serve(); });
  } catch (const std::system_error& error) {
    return os::SyscallError("start a thread for the node host", error.code().value());
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return hello_ || end_; });
  if (end_) return Fail(*end_);
  return *std::exchange(hello_, std::nullopt);
}

bool Connection::ended() const {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

std::uint64_t Connection::NextId() {
  const std::lock_guard lock(mutex_);
  return ++last_id_;
}

Result<void> Connection::Send(std::uint64_t id, const std::string& body, Pending& pending) {
  const std::size_t limit = std::min(options_.max_frame_bytes, kMaxFrameBytes);
  if (body.size() > limit) {
    return Fail(errors::kHostTooLarge, "what the node is given has " + std::to_string(body.size()) +
                                           " bytes as JSON, and the node host takes " +
                                           std::to_string(limit) +
                                           "; keep less in the state, or pass less to the node");
  }
  std::string frame = MakeFrame(body);
  const std::lock_guard lock(mutex_);
  if (end_) return Fail(*end_);
  pending_.emplace(id, &pending);
  Enqueue(std::move(frame));
  return {};
}

void Connection::Enqueue(std::string frame) {
  outgoing_.push_back(std::move(frame));
  Wake();
}

void Connection::Wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

Result<void> Connection::Check(const std::string& type, const std::string& node,
                               const json::Value& config) {
  const std::uint64_t id = NextId();
  CAISSON_ASSIGN(const std::string body, EncodeCheck(id, type, node, config));
  Pending pending;
  CAISSON_TRY(Send(id, body, pending));
  Answer answer = Await(id, pending);
  if (!answer) return Fail(std::move(answer).error().status);
  return {};
}

std::expected<json::Value, Failure> Connection::Run(const Call& call, Waiter& waiter) {
  const std::uint64_t id = NextId();
  auto body = EncodeRun(id, call);
  if (!body) return std::unexpected(Failure{std::move(body).error()});
  {
    const std::lock_guard lock(mutex_);
    secrets_.Add(call.secrets);
  }
  Pending pending{.waiter = &waiter, .answer = {}};
  auto sent = Send(id, *body, pending);
  if (!sent) return std::unexpected(Failure{std::move(sent).error()});
  body->clear();
  return Await(id, pending);
}

Connection::Answer Connection::Await(std::uint64_t id, Pending& pending) {
  const Clock::time_point deadline = Clock::now() + options_.call_timeout;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (changed_.wait_for(lock, kAskInterval, [&] { return pending.answer.has_value(); })) {
      return *std::move(pending.answer);
    }
    if (Clock::now() > deadline) {
      return Cancel(lock, id, pending,
                    {.code = errors::kHostTimedOut,
                     .message = "the node took longer than the " +
                                std::to_string(options_.call_timeout.count()) +
                                " ms that a node of the node host has; give it more time "
                                "(--node-host-timeout)"});
    }
    if (pending.waiter == nullptr) continue;
    lock.unlock();
    auto asked = pending.waiter->Check();
    lock.lock();
    if (!asked) return Cancel(lock, id, pending, std::move(asked).error());
  }
}

// The call is over when the host says so: it may not go on behind the back of whoever ended it.
Connection::Answer Connection::Cancel(std::unique_lock<std::mutex>& lock, std::uint64_t id,
                                      Pending& pending, Status reason) {
  if (!pending.answer && !end_) Enqueue(MakeFrame(EncodeCancel(id)));
  changed_.wait_for(lock, options_.cancel_grace, [&] { return pending.answer.has_value(); });
  if (!pending.answer) {
    End({.code = errors::kHostHung,
         .message = "the node host did not end a call that was cancelled, and was killed; one of "
                    "its nodes blocks the others"});
  }
  pending_.erase(id);
  return std::unexpected(Failure{std::move(reason)});
}

// With mutex_ held. The first reason stands.
void Connection::End(Status why) {
  if (end_) return;
  end_ = std::move(why);
  for (auto& [id, pending] : pending_) {
    if (!pending->answer) pending->answer = std::unexpected(Failure{*end_});
  }
  pending_.clear();
  changed_.notify_all();
  Wake();
}

void Connection::Serve() {
  try {
    if (Launch()) Exchange();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    End({.code = errors::kInternalFailed,
         .message = std::string("the connection to the node host failed: ") + error.what()});
  }
  way_out_.reset();
  host_.process.Kill();
  (void)host_.process.Wait(kEndPatience);
  ReadOutput();
  SayLines(true);
}

bool Connection::Launch() {
  started_ = heard_ = Clock::now();
  auto opened = OpenProcess();
  if (opened) return true;
  const std::lock_guard lock(mutex_);
  End(std::move(opened).error());
  return false;
}

Result<void> Connection::OpenProcess() {
  ProcessOptions process = options_.process;
  if (options_.way_out) {
    process.listen_port = kProxyPort;
    for (const char* name : {"HTTPS_PROXY=", "https_proxy="}) {
      process.environment.push_back(name + ("http://127.0.0.1:" + std::to_string(kProxyPort)));
    }
  }
  CAISSON_ASSIGN(host_, StartProcess(process));
  if (!options_.way_out) return {};
  CAISSON_ASSIGN(way_out_, WayOut::Serve(std::move(host_.listener), *options_.way_out));
  return {};
}

void Connection::Exchange() {
  for (;;) {
    bool writes = false;
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || end_) return;
      writes = !outgoing_.empty();
    }
    const short channel_events = writes ? POLLIN | POLLOUT : POLLIN;
    std::array<pollfd, 3> events = {{{host_.channel.get(), channel_events, 0},
                                     {host_.output.get(), POLLIN, 0},
                                     {wake_.get(), POLLIN, 0}}};
    const int ready = ::poll(events.data(), events.size(), PollTimeout(Clock::now()));
    if (ready < 0 && errno != EINTR) {
      const std::lock_guard lock(mutex_);
      End(os::SyscallError("poll a node host").error());
      return;
    }
    if (ready > 0) {
      if (events[2].revents != 0) {
        std::uint64_t count = 0;
        (void)!::read(wake_.get(), &count, sizeof count);
      }
      if (events[1].revents != 0) ReadOutput();
      if ((events[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !ReadChannel()) return;
      if ((events[0].revents & POLLOUT) != 0 && !WriteChannel()) return;
    }
    if (!Supervise()) return;
  }
}

int Connection::PollTimeout(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Clock::time_point next;
  if (!has_greeted_) {
    next = started_ + options_.start_timeout;
  } else if (pinged_) {
    next = *pinged_ + options_.ping_patience;
  } else if (!pending_.empty()) {
    next = heard_ + options_.ping_after;
  } else {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

bool Connection::Supervise() {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (end_) return false;
  if (!has_greeted_) {
    if (now < started_ + options_.start_timeout) return true;
    End({.code = errors::kHostUnavailable,
         .message = "the node host did not say within " +
                    std::to_string(options_.start_timeout.count()) + " ms what it serves"});
    return false;
  }
  if (pinged_) {
    if (now < *pinged_ + options_.ping_patience) return true;
    End({.code = errors::kHostHung,
         .message = "the node host gave no sign of life for " +
                    std::to_string(options_.ping_patience.count()) + " ms and was killed"});
    return false;
  }
  if (!pending_.empty() && now >= heard_ + options_.ping_after) {
    pinged_ = now;
    outgoing_.push_back(MakeFrame(EncodePing()));
  }
  return true;
}

bool Connection::ReadChannel() {
  std::vector<char> buffer(kReadBytes);
  const ssize_t count = ::recv(host_.channel.get(), buffer.data(), buffer.size(), 0);
  if (count > 0) {
    heard_ = Clock::now();
    pinged_.reset();
    reader_.Append({buffer.data(), static_cast<std::size_t>(count)});
    return HandleFrames();
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  Status lost = Lost();
  const std::lock_guard lock(mutex_);
  End(std::move(lost));
  return false;
}

// It has closed its channel: how it ended, and what it said last.
Status Connection::Lost() {
  const auto status = host_.process.Wait(kEndPatience);
  ReadOutput();
  SayLines(true);
  const std::lock_guard lock(mutex_);
  std::string message = "the node host ";
  message += status ? os::ToText(*status) : std::string("closed its channel");
  if (!has_greeted_) message += " before it said what it serves";
  if (!last_words_.empty()) {
    last_words_.pop_back();  // the last line's end
    message += "; its last words were: " + last_words_;
  }
  return {.code = has_greeted_ ? errors::kHostLost : errors::kHostUnavailable,
          .message = std::move(message)};
}

bool Connection::WriteChannel() {
  const std::lock_guard lock(mutex_);
  while (!outgoing_.empty()) {
    const std::string_view rest = std::string_view(outgoing_.front()).substr(sent_);
    const ssize_t count = ::send(host_.channel.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    // A channel that is closed says so when it is read.
    if (count < 0) return true;
    sent_ += static_cast<std::size_t>(count);
    if (sent_ < outgoing_.front().size()) return true;
    outgoing_.pop_front();
    sent_ = 0;
  }
  return true;
}

void Connection::ReadOutput() {
  std::array<char, 16384> buffer;
  while (host_.output.valid()) {
    const ssize_t count = ::read(host_.output.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) return host_.output.Reset();
    output_.append(buffer.data(), static_cast<std::size_t>(count));
    SayLines(false);
  }
}

void Connection::SayLines(bool all) {
  for (;;) {
    std::size_t end = output_.find('\n');
    const bool is_whole = end != std::string::npos;
    if (!is_whole && output_.size() < kMaxLineBytes && (!all || output_.empty())) return;
    end = std::min({end, output_.size(), kMaxLineBytes});
    if (!is_whole || end == kMaxLineBytes) end = Cut(end);
    const std::string line = output_.substr(0, end);
    output_.erase(0, is_whole && end < kMaxLineBytes ? end + 1 : end);
    // Before it is cut to what is kept, which may cut a secret in two.
    last_words_ += Redacted(line) + "\n";
    if (last_words_.size() > kKeptWords) last_words_.erase(0, last_words_.size() - kKeptWords);
    Say(nodes::LogLevel::kInfo, line);
  }
}

void Connection::Say(nodes::LogLevel level, std::string_view text) {
  if (!options_.log) return;
  options_.log(level, Redacted(text));
}

// Where a line of more than so many bytes is cut in two: not within a secret.
std::size_t Connection::Cut(std::size_t most) {
  const std::lock_guard lock(mutex_);
  const std::size_t settled = secrets_.Settled(std::string_view(output_).substr(0, most));
  return settled == 0 ? most : settled;
}

std::string Connection::Redacted(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return secrets_.Redact(std::string(text));
}

bool Connection::HandleFrames() {
  std::string_view body;
  for (;;) {
    const FrameReader::State state = reader_.Next(body);
    if (state == FrameReader::State::kMore) return true;
    Result<void> handled;
    if (state == FrameReader::State::kTooLarge) {
      handled = Fail(errors::kHostTooLarge,
                     "the node host announced a message of more than " +
                         std::to_string(std::min(options_.max_frame_bytes, kMaxFrameBytes)) +
                         " bytes and was killed; let its nodes return less");
    } else if (auto message = DecodeMessage(body); message) {
      handled = Handle(*std::move(message));
    } else {
      handled = Fail(std::move(message).error());
    }
    if (handled) continue;
    const std::lock_guard lock(mutex_);
    End(std::move(handled).error());
    return false;
  }
}

Result<void> Connection::Handle(Message message) {
  if (auto* hello = std::get_if<Hello>(&message)) return HandleHello(std::move(*hello));
  if (!has_greeted_) {
    return Fail(errors::kHostProtocol, "the first message of the node host is no hello");
  }
  if (auto* result = std::get_if<ResultMessage>(&message)) {
    return HandleAnswer(result->id, std::move(result->value));
  }
  if (auto* error = std::get_if<ErrorMessage>(&message)) {
    return HandleAnswer(error->id, std::unexpected(FailureOf(*error)));
  }
  if (auto* log = std::get_if<LogMessage>(&message)) return HandleLog(std::move(*log));
  return {};
}

Result<void> Connection::HandleHello(Hello hello) {
  const std::lock_guard lock(mutex_);
  if (has_greeted_) return Fail(errors::kHostProtocol, "the node host said hello twice");
  has_greeted_ = true;
  hello_ = std::move(hello);
  changed_.notify_all();
  return {};
}

Result<void> Connection::HandleAnswer(std::uint64_t id, Answer answer) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(id);
  if (found == pending_.end()) {
    return Fail(errors::kHostUnknownCall, "the node host answered the call " + std::to_string(id) +
                                              ", which nobody waits for, and was killed");
  }
  found->second->answer = std::move(answer);
  pending_.erase(found);
  changed_.notify_all();
  return {};
}

Result<void> Connection::HandleLog(LogMessage log) {
  {
    const std::lock_guard lock(mutex_);
    if (log.id && *log.id > last_id_) {
      return Fail(errors::kHostUnknownCall, "the node host said something for the call " +
                                                std::to_string(*log.id) +
                                                ", which nobody has made, and was killed");
    }
    const auto found = log.id ? pending_.find(*log.id) : pending_.end();
    if (found != pending_.end() && found->second->waiter != nullptr) {
      // Under the lock, so that the waiter does not go meanwhile.
      found->second->waiter->Log(log.level, log.text);
      return {};
    }
  }
  Say(log.level, log.text);
  return {};
}

}  // namespace caisson::host
