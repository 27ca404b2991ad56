// SPDX-License-Identifier: Apache-2.0
#include "http/outbound_transfer.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "errors/outbound.h"

namespace caisson::http {
namespace {

constexpr std::chrono::milliseconds kAskEvery{20};

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string Where(const Target& target) {
  return fmt::format("{}://{}:{}", target.scheme, target.host, target.port);
}

// The address that curl is about to connect to.
std::optional<std::pair<IpAddress, std::uint16_t>> PeerOf(const curl_sockaddr& address) {
  if (address.family == AF_INET6 && address.addrlen >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &address.addr, sizeof in6);
    IpAddress ip;
    std::memcpy(ip.bytes.data(), &in6.sin6_addr, ip.bytes.size());
    return std::pair{ip, ntohs(in6.sin6_port)};
  }
  if (address.family == AF_INET && address.addrlen >= sizeof(sockaddr_in)) {
    sockaddr_in in4;
    std::memcpy(&in4, &address.addr, sizeof in4);
    IpAddress ip = *ParseIp("0.0.0.0");
    std::memcpy(ip.bytes.data() + 12, &in4.sin_addr, 4);
    return std::pair{ip, ntohs(in4.sin_port)};
  }
  return std::nullopt;
}

}  // namespace

void Append(CurlList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  (void)list.release();
  list.reset(longer);
}

CurlTransfer::CurlTransfer(const OutboundTimes& times, std::function<bool()> give_up,
                           std::stop_token stop)
    : times_(times),
      give_up_(std::move(give_up)),
      stop_(std::move(stop)),
      deadline_(Clock::now() + times.total) {
  InitializeOnce();
  multi_ = curl_multi_init();
  easy_.reset(curl_easy_init());
}

CurlTransfer::~CurlTransfer() {
  easy_.reset();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
}

curl_socket_t CurlTransfer::OpenSocket(void* user, curlsocktype purpose, curl_sockaddr* address) {
  auto& self = *static_cast<CurlTransfer*>(user);
  const auto peer = PeerOf(*address);
  const bool allowed = purpose == CURLSOCKTYPE_IPCXN && peer && peer->second == self.port_ &&
                       std::ranges::find(self.addresses_, peer->first) != self.addresses_.end();
  if (!allowed) {
    self.walled_ = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int CurlTransfer::Progress(void* user, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  auto& self = *static_cast<CurlTransfer*>(user);
  if (down + up != self.moved_) {
    self.moved_ = down + up;
    self.active_ = Clock::now();
  }
  return 0;
}

void CurlTransfer::Begin(const Target& target, const std::vector<IpAddress>& addresses,
                         bool verify_tls, const std::string& ca_file) {
  CURL* raw = easy_.get();
  curl_easy_reset(raw);  // keeps connection and cookies
  addresses_ = addresses;
  port_ = target.port;
  walled_ = false;
  pins_.reset();
  if (!ParseIp(target.host)) {
    std::string pin = fmt::format("{}:{}:", target.host, target.port);
    for (const IpAddress& address : addresses) {
      if (!pin.ends_with(':')) pin += ',';
      pin += FormatIp(address);
    }
    Append(pins_, pin);
    curl_easy_setopt(raw, CURLOPT_RESOLVE, pins_.get());
  }
  curl_easy_setopt(raw, CURLOPT_OPENSOCKETFUNCTION, OpenSocket);
  curl_easy_setopt(raw, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(raw, CURLOPT_PROTOCOLS_STR, target.scheme.c_str());
  curl_easy_setopt(raw, CURLOPT_PROXY, "");
  // On a kept connection libcurl may send a request twice.
  curl_easy_setopt(raw, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(raw, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(raw, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(raw, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(raw, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(raw, CURLOPT_XFERINFOFUNCTION, Progress);
  curl_easy_setopt(raw, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(raw, CURLOPT_SSL_VERIFYPEER, verify_tls ? 1L : 0L);
  curl_easy_setopt(raw, CURLOPT_SSL_VERIFYHOST, verify_tls ? 2L : 0L);
  if (!ca_file.empty()) curl_easy_setopt(raw, CURLOPT_CAINFO, ca_file.c_str());
  // 0 would mean curl's own five minutes.
  const auto connect = times_.connect.value_or(times_.total);
  curl_easy_setopt(raw, CURLOPT_CONNECTTIMEOUT_MS,
                   std::max(1L, static_cast<long>(connect.count())));
}

Result<void> CurlTransfer::CheckTime(const Target& target) {
  if (Stopped()) {
    return Fail(errors::kOutboundStopped, "the request to " + Where(target) + " was stopped");
  }
  const Clock::time_point now = Clock::now();
  if (now >= deadline_) {
    return Fail(errors::kOutboundTimedOut,
                fmt::format("the request to {} took longer than {} ms in all", Where(target),
                            times_.total.count()));
  }
  if (times_.idle && now - active_ >= *times_.idle) {
    return Fail(errors::kOutboundTimedOut,
                fmt::format("{} was silent for {} ms", Where(target), times_.idle->count()));
  }
  return {};
}

Result<CURLcode> CurlTransfer::Drive(const Target& target) {
  active_ = Clock::now();
  moved_ = 0;
  for (int running = 1;;) {
    CAISSON_TRY(CheckTime(target));
    if (const CURLMcode code = curl_multi_perform(multi_, &running); code != CURLM_OK) {
      return Fail(errors::kOutboundBroken, fmt::format("the request to {} failed: {}",
                                                       Where(target), curl_multi_strerror(code)));
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) return message->data.result;
    }
    auto until = deadline_;
    if (times_.idle) until = std::min(until, active_ + *times_.idle);
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (give_up_) wait = std::min(wait, kAskEvery);
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp<long>(wait.count(), 0, 1000)),
                    nullptr);
  }
}

Result<void> CurlTransfer::Perform(const Target& target, const std::optional<Status>& failed) {
  const std::stop_callback wake(stop_, [this] { curl_multi_wakeup(multi_); });
  error_[0] = '\0';
  curl_multi_add_handle(multi_, easy_.get());
  const Result<CURLcode> code = Drive(target);
  curl_multi_remove_handle(multi_, easy_.get());
  if (failed) return Fail(*failed);
  if (!code) return Fail(code.error());
  return Explain(*code, target);
}

Result<void> CurlTransfer::Explain(CURLcode code, const Target& target) const {
  const std::string why = *error_ != '\0' ? error_ : curl_easy_strerror(code);
  const std::string where = Where(target);
  switch (code) {
    case CURLE_OK:
      return {};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      if (walled_) {
        return Fail(errors::kOutboundRefused,
                    "a connection to " + where + " went to an address that had not been checked");
      }
      return Fail(errors::kOutboundUnreachable, fmt::format("cannot reach {}: {}", where, why));
    case CURLE_OPERATION_TIMEDOUT:
      return Fail(errors::kOutboundTimedOut,
                  fmt::format("cannot reach {} in time: {}", where, why));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED:
      return Fail(errors::kOutboundUntrusted,
                  fmt::format("no trusted TLS with {}: {}", where, why));
    case CURLE_URL_MALFORMAT:
      return Fail(errors::kOutboundBadRequest,
                  fmt::format("'{}' is no URL of a request: {}", target.url, why));
    default:
      return Fail(errors::kOutboundBroken, fmt::format("the request to {} failed: {}", where, why));
  }
}

}  // namespace caisson::http
