// SPDX-License-Identifier: Apache-2.0
// One libcurl transfer pinned to checked addresses, watched by a clock and ended at once when it is
// to stop. What HTTP and mail have in common; for outbound*.cc only.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/outbound.h"
#include "http/outbound_guard.h"

namespace caisson::http {

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, CurlDeleter>;
void Append(CurlList& list, const std::string& line);

// Keeps one connection and the cookies of one Send. Used by one thread.
class CurlTransfer {
 public:
  CurlTransfer(const OutboundTimes& times, std::function<bool()> give_up, std::stop_token stop);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;
  ~CurlTransfer();

  CURL* easy() { return easy_.get(); }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  bool Stopped() const { return stop_.stop_requested() || (give_up_ && give_up_()); }

  // Clears the options of the hop before and sets those that every hop has: no connection but to
  // `addresses`, no proxy, TLS verified by `ca_file`.
  void Begin(const Target& target, const std::vector<IpAddress>& addresses, bool verify_tls,
             const std::string& ca_file);
  // To the end of the transfer. `failed` is what a callback left, and wins over curl's own reason.
  Result<void> Perform(const Target& target, const std::optional<Status>& failed);

 private:
  static curl_socket_t OpenSocket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int Progress(void* self, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up);
  Result<CURLcode> Drive(const Target& target);
  Result<void> CheckTime(const Target& target);
  Result<void> Explain(CURLcode code, const Target& target) const;

  using Clock = std::chrono::steady_clock;
  const OutboundTimes times_;
  const std::function<bool()> give_up_;
  const std::stop_token stop_;
  const Clock::time_point deadline_;
  CURLM* multi_;
  std::unique_ptr<CURL, CurlDeleter> easy_;
  CurlList pins_;
  std::vector<IpAddress> addresses_;
  std::uint16_t port_ = 0;
  bool walled_ = false;  // curl wanted another address
  Clock::time_point active_;
  curl_off_t moved_ = 0;
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace caisson::http
