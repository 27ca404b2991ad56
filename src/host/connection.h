// SPDX-License-Identifier: Apache-2.0
// One process of a node host, from its start to its end: calls go in from any thread, a thread of
// its own does all reading and writing. Whatever the process does wrong ends it, and every call
// with it: bytes that are no message, answers that nobody asked for, silence.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/status.h"
#include "host/frame.h"
#include "host/known_secrets.h"
#include "host/message.h"
#include "host/process.h"
#include "host/provider.h"
#include "host/way_out.h"
#include "os/fd.h"

namespace caisson::host {

struct ConnectionOptions {
  ProcessOptions process;
  std::chrono::milliseconds start_timeout{60'000};  // until its hello
  std::chrono::milliseconds call_timeout{300'000};
  std::chrono::milliseconds cancel_grace{5'000};    // for ending a call that was cancelled
  std::chrono::milliseconds ping_after{5'000};      // of silence while there are calls
  std::chrono::milliseconds ping_patience{30'000};  // for the answer
  std::size_t max_frame_bytes = 256u << 20;
  // What the process may reach by a proxy that it is told of; empty: nothing.
  std::optional<WayOutOptions> way_out;
  // What the process says outside of any call. One call at a time.
  std::function<void(nodes::LogLevel, std::string_view)> log;
};

class Connection {
 public:
  // `options` must outlive it.
  explicit Connection(const ConnectionOptions& options);
  // Ends the process; requires that no call is in progress.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Once, before all else: starts the process and waits for its hello. Fails with
  // host.unavailable, host.no_isolation, host.version, host.protocol, host.too_large.
  Result<Hello> Start();
  bool ended() const;
  // Blocks until the call has ended; fails as Provider does.
  Result<void> Check(const std::string& type, const std::string& node, const json::Value& config);
  std::expected<json::Value, Failure> Run(const Call& call, Waiter& waiter);

 private:
  using Clock = std::chrono::steady_clock;
  using Answer = std::expected<json::Value, Failure>;
  struct Pending {
    Waiter* waiter = nullptr;  // null: of a check
    std::optional<Answer> answer;
  };

  std::uint64_t NextId();
  Result<void> Send(std::uint64_t id, const std::string& body, Pending& pending);
  Answer Await(std::uint64_t id, Pending& pending);
  Answer Cancel(std::unique_lock<std::mutex>& lock, std::uint64_t id, Pending& pending,
                Status reason);
  void Enqueue(std::string frame);  // with mutex_ held
  void Wake() const;

  // On the connection's own thread.
  void Serve();
  bool Launch();
  Result<void> OpenProcess();
  void Exchange();
  int PollTimeout(Clock::time_point now);
  bool Supervise();  // pings, the time for the hello; false: it has ended
  bool ReadChannel();
  bool WriteChannel();
  void ReadOutput();
  bool HandleFrames();
  Result<void> Handle(Message message);
  Result<void> HandleHello(Hello hello);
  Result<void> HandleAnswer(std::uint64_t id, Answer answer);
  Result<void> HandleLog(LogMessage log);
  void SayLines(bool all);
  std::size_t Cut(std::size_t most);
  std::string Redacted(std::string_view text);
  void Say(nodes::LogLevel level, std::string_view text);
  void End(Status why);
  Status Lost();

  const ConnectionOptions& options_;
  os::UniqueFd wake_;
  HostProcess host_;  // the thread's
  std::unique_ptr<WayOut> way_out_;
  FrameReader reader_;  // the thread's
  std::string output_;  // the thread's: of its output, what is no whole line yet
  std::string last_words_;
  Clock::time_point started_;
  Clock::time_point heard_;
  std::optional<Clock::time_point> pinged_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Pending*> pending_;
  std::deque<std::string> outgoing_;
  std::size_t sent_ = 0;  // of the first one
  std::optional<Hello> hello_;
  std::optional<Status> end_;  // why it has ended
  bool has_greeted_ = false;
  bool stop_ = false;
  KnownSecrets secrets_;
  std::thread thread_;
};

}  // namespace caisson::host
