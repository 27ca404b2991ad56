// SPDX-License-Identifier: Apache-2.0
#include "http/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error_catalogue.h"
#include "errors/http.h"

namespace caisson::http {
namespace {

constexpr std::uint64_t kMostEarned = 1'000'000;  // seconds

Answer PlainAnswer(const Status& status, const Request*) {
  return {FindError(status.code).http_status,
          {{"Content-Type", "text/plain; charset=utf-8"}},
          fmt::format("{}: {}\n", status.code.name, status.message)};
}

std::string RandomPrefix() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

bool IsSaneId(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~:/+=@").find(c) != std::string_view::npos;
  });
}

}  // namespace

Service::Service(Options given, Router routes)
    : options(std::move(given)),
      router(std::move(routes)),
      pool(options.limits.handler_threads),
      id_prefix_(RandomPrefix()) {
  if (!options.error_answer) options.error_answer = PlainAnswer;
}

void Service::NameRequest(Request& request) {
  const std::string* given = request.headers.Find("X-Request-Id");
  if (given && IsSaneId(*given)) {
    request.id = *given;
  } else {
    request.id = fmt::format("{}-{:x}", id_prefix_, next_id_++);
  }
}

Serving::Serving(Service& service, Request request, bool may_upgrade, std::function<void()> wake)
    : service_(service), wake_(std::move(wake)) {
  service_.NameRequest(request);
  exchange_ = std::make_shared<ServerExchange>(std::move(request), service_.options.limits.buffer,
                                               service_.options.error_answer);
  if (may_upgrade) exchange_->MayUpgrade();
  ++service_.exchanges;
}

Serving::~Serving() {
  // The exchange may live on in its handler's thread, the connection need not.
  exchange_->SetWake(nullptr);
  --service_.exchanges;
}

void Serving::Start(bool has_body, bool expects_continue) {
  offered_ = asked_ = std::chrono::steady_clock::now();
  if (!has_body) exchange_->EndInput();
  auto handler = service_.router.Route(exchange_->mutable_request());
  if (!handler) return Refuse(handler.error());
  if (expects_continue) exchange_->ExpectContinue();
  if ((*handler)->may_block) {
    exchange_->SetWake(wake_);
    const Handler* chosen = *handler;
    runs_in_pool_ =
        service_.pool.TryRun([exchange = exchange_, chosen] { exchange->Run(*chosen); });
    if (runs_in_pool_) return;
    exchange_->SetWake(nullptr);
    return Refuse(
        {errors::kHttpBusy, "all threads that serve requests are busy; nothing was done"});
  }
  const auto declared = exchange_->request().body_length;
  const std::size_t most = service_.options.limits.inline_body;
  if (declared && *declared > most) {
    return Refuse({errors::kHttpBodyTooLarge,
                   fmt::format("the body of this request may have {} bytes", most)});
  }
  inline_ = *handler;
  if (!has_body) {
    BodyEnded();
  } else if (expects_continue) {
    exchange_->WantContinue();
  }
}

void Serving::Refuse(const Status& status) {
  inline_ = nullptr;
  exchange_->BreakInput({errors::kHttpMisuse, "the request was refused"});
  exchange_->Run({false, [&](Exchange&) -> Result<void> { return Fail(status); }});
}

void Serving::Offer(std::string_view bytes, std::chrono::steady_clock::time_point now) {
  if (!bytes.empty()) offered_ = now;
  exchange_->Offer(bytes);
}

void Serving::OfferBlock(std::string& block, std::chrono::steady_clock::time_point now) {
  if (!block.empty()) offered_ = now;
  exchange_->OfferBlock(block);
}

void Serving::BodyEnded() {
  exchange_->EndInput();
  if (const Handler* handler = std::exchange(inline_, nullptr)) exchange_->Run(*handler);
}

bool Serving::BodyIsLate(std::chrono::steady_clock::time_point now) {
  const Limits& limits = service_.options.limits;
  const auto since_last_time = now - std::exchange(asked_, now);
  const auto since = exchange_->waits_since();
  if (!since && !inline_) return false;
  waited_ += since_last_time;
  const auto earned =
      std::chrono::seconds(std::min(exchange_->bytes_in() / limits.body_rate, kMostEarned));
  return now - std::max(offered_, since.value_or(offered_)) > limits.body_timeout ||
         waited_ > limits.body_timeout + earned;
}

void Serving::BreakBody(const Status& status) {
  if (inline_) return Refuse(status);
  exchange_->BreakInput(status);
}

bool Serving::BodyOverflows() {
  const std::size_t most = service_.options.limits.inline_body;
  if (!inline_ || exchange_->bytes_in() <= most) return false;
  Refuse(
      {errors::kHttpBodyTooLarge, fmt::format("the body of this request may have {} bytes", most)});
  return true;
}

void Serving::Report(int status, bool whole) {
  if (!service_.options.served) return;
  service_.options.served({exchange_->request_if_read(), status, whole, exchange_->bytes_in(),
                           exchange_->bytes_out(),
                           std::chrono::steady_clock::now() - exchange_->begun()});
}

}  // namespace caisson::http
