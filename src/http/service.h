// SPDX-License-Identifier: Apache-2.0
// What all connections of one server share: options, routes, the pool of handlers, counters; and
// how a request whose head is read gets to its handler, whatever the protocol.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/handler_pool.h"
#include "http/router.h"
#include "http/server.h"
#include "http/server_exchange.h"

namespace caisson::http {

struct Service {
  Service(Options options, Router router);

  Options options;
  Router router;
  HandlerPool pool;
  std::atomic<bool> draining{false};
  std::atomic<std::size_t> exchanges{0};

  // Sets request.id from the header, or makes one.
  void NameRequest(Request& request);

 private:
  const std::string id_prefix_;
  std::atomic<std::uint64_t> next_id_{1};
};

// One request from its head to the end of its answer, on the I/O thread. Owned by its connection.
class Serving {
 public:
  // `wake` reaches the connection when the exchange has news, from any thread.
  Serving(Service& service, Request request, bool may_upgrade, std::function<void()> wake);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Routes and starts the handler; one that does not block waits for BodyEnded.
  void Start(bool has_body, bool expects_continue);
  // Answers with `status` in place of a handler.
  void Refuse(const Status& status);
  // A piece of the body; the handler gets it.
  void Offer(std::string_view bytes, std::chrono::steady_clock::time_point now);
  void OfferBlock(std::string& block, std::chrono::steady_clock::time_point now);
  void BodyEnded();
  // To be asked at every tick until the body has ended: it does not come, or too slowly.
  bool BodyIsLate(std::chrono::steady_clock::time_point now);
  // Fails the handler, or answers in its place when it has not begun.
  void BreakBody(const Status& status);
  // More of the body came than a handler on the I/O thread may have.
  bool BodyOverflows();
  bool waits_for_body() const { return inline_ != nullptr; }
  bool runs_in_pool() const { return runs_in_pool_; }

  // Tells Options::served; the last thing that happens to it.
  void Report(int status, bool whole);

  ServerExchange& exchange() { return *exchange_; }

 private:
  Service& service_;
  std::shared_ptr<ServerExchange> exchange_;
  std::function<void()> wake_;
  const Handler* inline_ = nullptr;  // waits for the body
  bool runs_in_pool_ = false;
  std::chrono::steady_clock::time_point offered_;  // the last piece of the body
  std::chrono::steady_clock::time_point asked_;    // BodyIsLate
  std::chrono::steady_clock::duration waited_{};   // of the handler, for its body
};

}  // namespace caisson::http
