// SPDX-License-Identifier: Apache-2.0
// For tests of the gate's proxy: destinations that echo, stall, listen or talk, and machines whose
// names are resolved.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "egress/gate/dns_message.h"
#include "egress/gate/proxy.h"
#include "egress/gate/test_gate.h"

namespace caisson::egress::gate {

inline constexpr std::uint32_t kGood = 0xcb00710a;   // 203.0.113.10
inline constexpr std::uint32_t kOther = 0xcb007114;  // 203.0.113.20

// What has come until `size` bytes are there or the other side is done; "…|end" or "…|reset" then.
inline std::string Received(int fd, std::size_t size = 1u << 30) {
  std::string got;
  while (got.size() < size) {
    if (!AwaitReadable(fd)) return got + "|nothing";
    std::array<char, 65536> bytes;
    const ssize_t count = ::recv(fd, bytes.data(), std::min(bytes.size(), size - got.size()), 0);
    if (count == 0) return got + "|end";
    if (count < 0) return got + (errno == ECONNRESET ? "|reset" : "|error");
    got.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return got;
}
// False when the other side has gone, which recv does not say again.
inline bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Runs `serve` for each connection, one after another.
class Destination {
 public:
  explicit Destination(std::function<void(int fd)> serve) : serve_(std::move(serve)) {
    listener_ = Listening(kLoopback);
    thread_ = std::thread([this] {
      while (!stop_) {
        if (!AwaitReadable(listener_.get(), 20)) continue;
        const os::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ++connections_;
        serve_(fd.get());
      }
    });
  }
  ~Destination() {
    stop_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return PortOf(listener_.get()); }
  int connections() const { return connections_; }

 private:
  std::function<void(int fd)> serve_;
  os::UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};
inline void Echo(int fd) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    SendAll(fd, {bytes.data(), static_cast<std::size_t>(got)});
  }
}

// Many connections at once.
class Crowd {
 public:
  enum class Does : std::uint8_t {
    kEcho,
    kListen,  // and says nothing
    kTalk,    // and does not listen
  };
  explicit Crowd(Does does) : does_(does), listener_(Listening(kLoopback)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~Crowd() {
    stop_ = true;
    thread_.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  std::uint16_t port() const { return PortOf(listener_.get()); }
  std::size_t size() const { return size_; }
  std::size_t heard() const { return heard_; }  // bytes

 private:
  void Serve() {
    std::vector<pollfd> events = {{listener_.get(), POLLIN, 0}};
    while (!stop_) {
      if (::poll(events.data(), events.size(), 20) <= 0) continue;
      for (std::size_t i = events.size(); i-- > 1;) {
        if (events[i].revents == 0 || ServeOne(events[i].fd)) continue;
        std::erase_if(open_, [&](const os::UniqueFd& fd) { return fd.get() == events[i].fd; });
        events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (events[0].revents == 0) continue;
      open_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (does_ == Does::kTalk) {
        const std::string bytes(16u << 20, 'x');
        ::send(open_.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      } else {
        events.push_back({open_.back().get(), POLLIN, 0});
      }
      ++size_;
    }
  }
  bool ServeOne(int fd) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) heard_ += static_cast<std::size_t>(got);
    if (got > 0 && does_ == Does::kEcho) {
      SendAll(fd, {bytes.data(), static_cast<std::size_t>(got)});
    }
    return got > 0;
  }

  const Does does_;
  os::UniqueFd listener_;
  std::vector<os::UniqueFd> open_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> size_ = 0;
  std::atomic<std::size_t> heard_ = 0;
  std::thread thread_;
};

class ProxyTest : public ::testing::Test {
 protected:
  ProxyTest()
      : names_([this](const std::string& question, bool) {
          const auto query = DecodeQuery(question)->query;
          return std::vector{
              EncodeAnswer(query, Rcode::kNoError, {addresses_.at(query.name)}, 60, 512)};
        }) {}
  void Start(std::function<void(int fd)> serve = Echo, ProxyOptions options = {}) {
    destination_.emplace(std::move(serve));
    gate_.emplace(TestGate::Options{.resolvers = {names_.address()}, .proxy = std::move(options)});
    for (const std::uint16_t port : {80, 443}) {
      gate_->Serve({kGood, port}, destination_->port());
      gate_->Serve({kOther, port}, destination_->port());
    }
    gate_->SetMachine(kMachine, 1, Rules());
    for (const char* name : {"good.test", "also.test", "other.test", "tls.test"}) Resolve(name);
  }
  static std::vector<NameRule> Rules() {
    return {RuleFor("good.test", {}, 0), RuleFor("also.test", {}, 1), RuleFor("other.test", {}, 2),
            RuleFor("tls.test", 443, 3)};
  }
  void Resolve(const std::string& name, std::uint32_t machine = kMachine) {
    EXPECT_FALSE(gate_->Ask(EncodeQuestion(7, WireName(name), false), machine).empty());
  }
  // What a guest gets that sends this to `to`.
  std::string Try(std::string_view bytes, const Endpoint& to = {kGood, 443}) {
    const os::UniqueFd fd = gate_->Connect(to);
    if (!SendAll(fd.get(), bytes)) return "|reset";
    const std::string got = Received(fd.get(), bytes.size());
    return got == bytes ? "echoed" : got;
  }

  const std::map<std::string, std::uint32_t> addresses_ = {
      {"good.test", kGood}, {"also.test", kGood}, {"tls.test", kGood}, {"other.test", kOther}};
  FakeServer names_;
  std::optional<Destination> destination_;
  std::optional<TestGate> gate_;
};

inline std::string Get(const std::string& host, const std::string& more = "") {
  return "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
}

}  // namespace caisson::egress::gate
