// SPDX-License-Identifier: Apache-2.0
// What stands between one handler and the connection that it serves: two bounded buffers and the
// head of the answer, under one lock. The handler's side blocks; the I/O side never does. Protocols
// (http1, http2) see only the I/O side.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "http/exchange.h"

namespace caisson::http {

struct AnswerHead {
  int status = 0;
  Headers headers;
  std::optional<std::uint64_t> length;
  bool upgrade = false;
};

class ServerExchange final : public Exchange, public std::enable_shared_from_this<ServerExchange> {
 public:
  ServerExchange(Request request, std::size_t buffer, const ErrorAnswer& error_answer);

  // ---- The handler's side.
  const Request& request() const override { return request_; }
  Result<std::size_t> ReadSome(std::span<char> into) override;
  void EndReading() override;
  Result<void> Respond(int status, Headers headers, std::string body) override;
  Result<void> Begin(int status, Headers headers, std::optional<std::uint64_t> length) override;
  Result<void> Write(std::string_view bytes) override;
  Result<void> Finish() override;
  bool answered() const override { return phase_ != Phase::kUnanswered; }
  std::stop_token gone() const override { return gone_.get_token(); }
  Result<std::unique_ptr<Stream>> Upgrade(Headers headers) override;

  // Runs `handler` to its end, answers what it left unanswered, and marks the exchange as done.
  void Run(const Handler& handler);

  // ---- The I/O side; all on the I/O thread of the connection.
  Request& mutable_request() { return request_; }  // before Run
  const Request* request_if_read() const { return request_.method.empty() ? nullptr : &request_; }
  // `wake` is called, from any thread and with the lock held, when PickUp has something new or
  // there is room again after Room() said 0. Without it (an inline handler) nobody is told.
  void SetWake(std::function<void()> wake);
  void MayUpgrade() { may_upgrade_ = true; }
  void ExpectContinue() { continue_ = Continue::kExpected; }
  void WantContinue() { continue_ = Continue::kWanted; }

  std::size_t Room(std::size_t wanted = 1);
  // Deliver wakes the handler for what was offered: once for many pieces.
  void Offer(std::string_view bytes);
  void Deliver();
  // The same for a whole block, which is taken if nothing waits before it; `block` ends up empty.
  void OfferBlock(std::string& block);
  void EndInput();
  void BreakInput(Status status);
  // The handler waits for bytes of the body since that time.
  std::optional<std::chrono::steady_clock::time_point> waits_since();

  struct Picked {
    std::optional<AnswerHead> head;
    bool send_continue = false;
    bool end = false;     // the answer is whole
    bool broken = false;  // it will never be: break the connection off
    bool done = false;    // the handler is over
  };
  // `block`, which is empty, takes what was written since the last call.
  Picked PickUp(std::string& block);
  // The client is gone, or the server ends: what the handler calls from now on fails.
  void Lose(const Status& status);
  // Only tells the handler: reading and writing may go on.
  void RequestStop() { gone_.request_stop(); }
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }
  int status() const { return status_; }
  std::chrono::steady_clock::time_point begun() const { return begun_; }

 private:
  friend class UpgradedStream;
  enum class Phase { kUnanswered, kBegun, kFinished, kUpgraded };
  enum class Continue { kNone, kExpected, kWanted };

  Result<void> CheckHead(int status, const Headers& headers) const;
  void SetHead(AnswerHead head);
  Result<void> Append(std::string_view bytes);
  void EndOutput();
  void Settle(Result<void> result);
  void Refuse(const Status& status);
  void WakeLocked();

  Request request_;
  const std::size_t buffer_;
  const ErrorAnswer& error_answer_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::stop_source gone_;
  bool may_upgrade_ = false;

  // The handler's own.
  Phase phase_ = Phase::kUnanswered;
  bool bodiless_ = false;  // the answer has no body, whatever is written
  std::optional<std::uint64_t> length_;
  std::uint64_t written_ = 0;
  std::string reading_;  // taken from input_ and not read yet, from read_ on
  std::size_t read_ = 0;
  std::atomic<int> status_{0};
  std::atomic<std::uint64_t> bytes_in_{0};
  std::atomic<std::uint64_t> bytes_out_{0};

  std::mutex mutex_;
  std::condition_variable readable_;
  std::condition_variable writable_;
  std::function<void()> wake_;
  bool woken_ = false;  // wake_ was called and PickUp was not
  std::string input_;
  bool input_paused_ = false;
  bool undelivered_ = false;
  bool input_ended_ = false;
  std::optional<Status> input_error_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;
  std::string output_;
  bool output_ended_ = false;
  std::optional<Status> output_error_;
  std::optional<AnswerHead> head_;
  Continue continue_ = Continue::kNone;
  bool broken_ = false;
  bool done_ = false;
};

}  // namespace caisson::http
