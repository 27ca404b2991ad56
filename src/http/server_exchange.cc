// SPDX-License-Identifier: Apache-2.0
#include "http/server_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error_catalogue.h"
#include "errors/http.h"
#include "errors/internal.h"

namespace caisson::http {
namespace {

std::unexpected<Status> Misuse(std::string message) {
  return Fail(errors::kHttpMisuse, std::move(message));
}

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

// The stream of an upgraded exchange. Its two directions share nothing but the exchange's lock.
class UpgradedStream final : public Stream {
 public:
  explicit UpgradedStream(std::shared_ptr<ServerExchange> exchange)
      : exchange_(std::move(exchange)) {}
  ~UpgradedStream() override { exchange_->EndOutput(); }
  Result<std::size_t> Read(std::span<char> into) override { return exchange_->ReadSome(into); }
  Result<void> Write(std::string_view bytes) override { return exchange_->Append(bytes); }
  Result<void> CloseWrite() override {
    exchange_->EndOutput();
    return {};
  }
  void EndReading() override { exchange_->EndReading(); }
  void Abort() override { exchange_->Lose({errors::kHttpClientGone, "the stream was broken off"}); }

 private:
  const std::shared_ptr<ServerExchange> exchange_;
};

ServerExchange::ServerExchange(Request request, std::size_t buffer, const ErrorAnswer& error_answer)
    : request_(std::move(request)), buffer_(buffer), error_answer_(error_answer) {}

void ServerExchange::SetWake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void ServerExchange::WakeLocked() {
  if (woken_ || !wake_) return;
  woken_ = true;
  wake_();
}

Result<std::size_t> ServerExchange::ReadSome(std::span<char> into) {
  if (into.empty()) return Misuse("a read into no space");
  if (read_ == reading_.size()) {
    std::unique_lock lock(mutex_);
    if (continue_ == Continue::kExpected) {
      continue_ = Continue::kWanted;
      WakeLocked();
    }
    if (input_.empty() && !input_ended_ && !input_error_) {
      if (!wake_) return Misuse("a handler on the I/O thread reads a body that is not whole");
      waits_since_ = std::chrono::steady_clock::now();
      readable_.wait(lock, [&] { return !input_.empty() || input_ended_ || input_error_; });
      waits_since_.reset();
    }
    if (input_.empty()) {
      if (input_error_) return Fail(*input_error_);
      return 0;
    }
    reading_.clear();
    read_ = 0;
    reading_.swap(input_);
    if (std::exchange(input_paused_, false)) WakeLocked();
  }
  const std::size_t size = std::min(into.size(), reading_.size() - read_);
  std::copy_n(reading_.data() + read_, size, into.data());
  read_ += size;
  return size;
}

void ServerExchange::EndReading() {
  const std::lock_guard lock(mutex_);
  if (!input_error_) input_error_ = Status{errors::kHttpClientGone, "reading was ended"};
  input_.clear();
  readable_.notify_all();
  if (std::exchange(input_paused_, false)) WakeLocked();
}

Result<void> ServerExchange::CheckHead(int status, const Headers& headers) const {
  if (phase_ != Phase::kUnanswered) return Misuse("a second answer to one request");
  if (status < 200 || status > 999) return Misuse(fmt::format("an answer of status {}", status));
  for (const Field& field : headers) {
    if (!IsToken(field.name) || !IsFieldValue(field.value)) {
      return Misuse(fmt::format("the field {} of an answer is malformed", field.name));
    }
  }
  return {};
}

void ServerExchange::SetHead(AnswerHead head) {
  bodiless_ = request_.method == "HEAD" || (!head.upgrade && !HasBody(head.status));
  length_ = head.length;
  status_ = head.status;
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  WakeLocked();
}

Result<void> ServerExchange::Respond(int status, Headers headers, std::string body) {
  CAISSON_TRY(CheckHead(status, headers));
  bodiless_ = request_.method == "HEAD" || !HasBody(status);
  phase_ = Phase::kFinished;
  status_ = status;
  const std::lock_guard lock(mutex_);
  if (output_error_) return Fail(*output_error_);
  head_ = AnswerHead{status, std::move(headers), body.size()};
  if (!bodiless_) {
    bytes_out_ += body.size();
    output_ = std::move(body);
  }
  output_ended_ = true;
  WakeLocked();
  return {};
}

Result<void> ServerExchange::Begin(int status, Headers headers,
                                   std::optional<std::uint64_t> length) {
  CAISSON_TRY(CheckHead(status, headers));
  if (!wake_) return Misuse("a handler on the I/O thread begins a stream");
  phase_ = Phase::kBegun;
  SetHead({status, std::move(headers), length});
  return {};
}

Result<void> ServerExchange::Append(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  while (!bytes.empty()) {
    writable_.wait(lock, [&] { return output_.size() < buffer_ || output_error_; });
    if (output_error_) return Fail(*output_error_);
    if (output_ended_) return Misuse("a write after the end");
    const std::size_t size = std::min(bytes.size(), buffer_ - output_.size());
    output_.append(bytes.substr(0, size));
    bytes_out_ += size;
    bytes.remove_prefix(size);
    WakeLocked();
  }
  if (output_error_) return Fail(*output_error_);
  return {};
}

Result<void> ServerExchange::Write(std::string_view bytes) {
  if (phase_ != Phase::kBegun) return Misuse("a write outside of Begin and Finish");
  if (length_ && bytes.size() > *length_ - written_) {
    return Misuse("more was written than the length that was declared");
  }
  written_ += bytes.size();
  return Append(bodiless_ ? std::string_view() : bytes);
}

Result<void> ServerExchange::Finish() {
  if (phase_ != Phase::kBegun) return Misuse("the end of an answer that was not begun");
  if (length_ && written_ != *length_ && !bodiless_) {
    return Misuse(fmt::format("{} of {} bytes were written", written_, *length_));
  }
  phase_ = Phase::kFinished;
  EndOutput();
  const std::lock_guard lock(mutex_);
  if (output_error_) return Fail(*output_error_);
  return {};
}

void ServerExchange::EndOutput() {
  const std::lock_guard lock(mutex_);
  output_ended_ = true;
  WakeLocked();
}

Result<std::unique_ptr<Stream>> ServerExchange::Upgrade(Headers headers) {
  CAISSON_TRY(CheckHead(200, headers));
  if (!may_upgrade_ || !wake_) {
    return Fail(errors::kHttpUpgradeRefused,
                "this path needs an upgrade: send Connection: Upgrade and Upgrade over HTTP/1.1, "
                "without a body");
  }
  phase_ = Phase::kUpgraded;
  {
    const std::lock_guard lock(mutex_);
    input_ended_ = false;  // the body has ended, the stream begins
  }
  SetHead({101, std::move(headers), std::nullopt, true});
  return std::make_unique<UpgradedStream>(shared_from_this());
}

void ServerExchange::Refuse(const Status& status) {
  Answer answer = error_answer_(status, request_if_read());
  if (status.code == errors::kHttpMethodNotAllowed) answer.headers.Set("Allow", status.details);
  if (Respond(answer.status, std::move(answer.headers), std::move(answer.body))) return;
  if (phase_ == Phase::kUnanswered) {
    (void)Respond(FindError(status.code).http_status, {}, {});
  }
}

void ServerExchange::Settle(Result<void> result) {
  bool broken = false;
  if (phase_ == Phase::kUnanswered) {
    if (result) result = Fail(errors::kHttpNoAnswer, "the handler of the request gave no answer");
    Refuse(result.error());
  } else if (phase_ == Phase::kBegun) {
    broken = true;
  }
  const std::lock_guard lock(mutex_);
  broken_ = broken;
  done_ = true;
  WakeLocked();
}

void ServerExchange::Run(const Handler& handler) {
  try {
    Settle(handler.serve(*this));
  } catch (const std::exception& error) {
    Settle(Fail(errors::kInternalFailed, fmt::format("a handler failed: {}", error.what())));
  }
}

std::size_t ServerExchange::Room(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  if (input_error_) return buffer_;  // nobody will read it: it is dropped
  if (input_.size() + wanted <= buffer_) return buffer_ - input_.size();
  input_paused_ = true;
  return 0;
}

void ServerExchange::Offer(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::lock_guard lock(mutex_);
  bytes_in_ += bytes.size();
  if (input_error_) return;
  input_.append(bytes);
  undelivered_ = true;
}

void ServerExchange::OfferBlock(std::string& block) {
  const std::lock_guard lock(mutex_);
  bytes_in_ += block.size();
  undelivered_ |= !block.empty();
  if (input_error_) {
    block.clear();
  } else if (input_.empty()) {
    input_.swap(block);
  } else {
    input_.append(block);
    block.clear();
  }
}

void ServerExchange::Deliver() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(undelivered_, false)) return;
  if (waits_since_) waits_since_ = std::chrono::steady_clock::now();
  readable_.notify_one();
}

void ServerExchange::EndInput() {
  const std::lock_guard lock(mutex_);
  input_ended_ = true;
  readable_.notify_one();
}

void ServerExchange::BreakInput(Status status) {
  const std::lock_guard lock(mutex_);
  if (input_error_ || input_ended_) return;
  input_error_ = std::move(status);
  input_.clear();
  readable_.notify_one();
}

std::optional<std::chrono::steady_clock::time_point> ServerExchange::waits_since() {
  const std::lock_guard lock(mutex_);
  return waits_since_;
}

ServerExchange::Picked ServerExchange::PickUp(std::string& block) {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  Picked picked;
  picked.head = std::exchange(head_, std::nullopt);
  if (picked.head) continue_ = Continue::kNone;
  picked.send_continue = continue_ == Continue::kWanted;
  if (picked.send_continue) continue_ = Continue::kNone;
  block.swap(output_);
  picked.end = output_ended_;
  picked.broken = broken_;
  picked.done = done_;
  writable_.notify_one();
  return picked;
}

void ServerExchange::Lose(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!input_error_) input_error_ = status;
    if (!output_error_) output_error_ = status;
    input_.clear();
    output_.clear();
    readable_.notify_all();
    writable_.notify_all();
    // A wake before this one may have found the connection waiting for its client, and gone
    // unheard.
    woken_ = false;
    WakeLocked();
  }
  gone_.request_stop();
}

}  // namespace caisson::http
