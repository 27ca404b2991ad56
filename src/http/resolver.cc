// SPDX-License-Identifier: Apache-2.0
#include "http/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "errors/outbound.h"

namespace caisson::http {
namespace {

constexpr std::chrono::milliseconds kAskEvery{20};

struct Lookup {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  int error = 0;
  std::vector<IpAddress> addresses;
};

std::atomic<int>& InProgress() {
  static std::atomic<int> count{0};
  return count;
}

IpAddress AddressOf(const sockaddr& socket_address) {
  if (socket_address.sa_family == AF_INET6) {
    IpAddress address;
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(socket_address);
    std::memcpy(address.bytes.data(), &in6.sin6_addr, address.bytes.size());
    return address;
  }
  IpAddress address = *ParseIp("0.0.0.0");
  const auto& in4 = reinterpret_cast<const sockaddr_in&>(socket_address);
  std::memcpy(address.bytes.data() + 12, &in4.sin_addr, 4);
  return address;
}

void LookUp(const std::string& host, Lookup& lookup) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::lock_guard lock(lookup.mutex);
  lookup.error = error;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET || one->ai_family == AF_INET6) {
      lookup.addresses.push_back(AddressOf(*one->ai_addr));
    }
  }
  if (found != nullptr) freeaddrinfo(found);
  lookup.done = true;
  lookup.ended.notify_all();
}

class GetAddrInfo final : public Resolver {
 public:
  Result<std::vector<IpAddress>> Resolve(const std::string& host,
                                         std::chrono::steady_clock::time_point deadline,
                                         const std::function<bool()>& give_up) override {
    if (const auto address = ParseIp(host)) return std::vector{*address};
    const auto lookup = std::make_shared<Lookup>();
    CAISSON_TRY(Start(host, lookup));
    std::unique_lock lock(lookup->mutex);
    while (!lookup->done) {
      if (give_up && give_up()) {
        return Fail(errors::kOutboundStopped, "the lookup of '" + host + "' was stopped");
      }
      const auto now = std::chrono::steady_clock::now();
      if (now >= deadline) {
        return Fail(errors::kOutboundTimedOut, "the name '" + host + "' was not resolved in time");
      }
      lookup->ended.wait_until(lock, std::min(deadline, now + kAskEvery));
    }
    if (lookup->error == 0 && !lookup->addresses.empty()) return std::move(lookup->addresses);
    return Fail(errors::kOutboundUnreachable,
                "the name '" + host + "' has no address" +
                    (lookup->error != 0 ? std::string(": ") + gai_strerror(lookup->error) : ""));
  }

 private:
  static Result<void> Start(const std::string& host, const std::shared_ptr<Lookup>& lookup) {
    const Status busy{errors::kOutboundUnreachable,
                      "the name '" + host + "' cannot be resolved now: " +
                          "as many lookups as are allowed are in progress; try again later"};
    if (InProgress().fetch_add(1) >= kMostLookups) {
      InProgress().fetch_sub(1);
      return Fail(busy);
    }
    try {
      std::thread([host, lookup] {
        LookUp(host, *lookup);
        InProgress().fetch_sub(1);
      }).detach();
    } catch (const std::system_error&) {
      InProgress().fetch_sub(1);
      return Fail(busy);
    }
    return {};
  }
};

}  // namespace

Resolver& SystemResolver() {
  static GetAddrInfo resolver;
  return resolver;
}

}  // namespace caisson::http
