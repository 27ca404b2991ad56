// SPDX-License-Identifier: Apache-2.0
// The one way out of a node host's network: an HTTP proxy on its loopback that knows CONNECT alone.
// It is served from here, outside of that network, and opens what a policy allows: names are
// resolved here, and an address that is closed to everybody is closed whatever name leads to it.
// What is sent through a connection is not looked at. Thread-safe; owns its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "egress/policy.h"
#include "os/fd.h"

namespace caisson::host {

inline constexpr std::uint16_t kProxyPort = 3128;
inline constexpr std::size_t kMaxConnections = 64;
inline constexpr std::size_t kMaxRequestBytes = 8u << 10;  // of a CONNECT with its headers

struct WayOutOptions {
  egress::Policy policy = egress::Policy::DenyAll();
  // Told of what was refused, one call at a time. May be null.
  std::function<void(std::string_view)> log;
  // The addresses of a name, and a connection to one; empty: those of this host, IPv4 alone.
  std::function<std::vector<std::uint32_t>(const std::string& name)> resolve;
  std::function<os::UniqueFd(std::uint32_t address, std::uint16_t port)> connect;
};

class WayOut {
 public:
  // `listener` is a socket that listens in the other network. Fails with os.syscall.
  static Result<std::unique_ptr<WayOut>> Serve(os::UniqueFd listener, WayOutOptions options);
  // Ends every connection.
  ~WayOut();
  WayOut(const WayOut&) = delete;
  WayOut& operator=(const WayOut&) = delete;

 private:
  struct Flow {
    os::UniqueFd inside;
    os::UniqueFd outside;
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  explicit WayOut(WayOutOptions options) : options_(std::move(options)) {}
  void Accept();
  void Admit(os::UniqueFd inside);
  void RunFlow(Flow& flow);
  // An empty text: it was opened, and flow.outside is there. Else the answer of the proxy.
  std::string Open(Flow& flow, std::string_view target);
  std::string Refuse(std::string_view target, const std::string& because);
  bool Keep(Flow& flow, os::UniqueFd outside);

  const WayOutOptions options_;
  os::UniqueFd listener_;
  os::UniqueFd wake_;
  std::mutex mutex_;  // of stop_, flows_ and the descriptors of a flow
  bool stop_ = false;
  std::list<Flow> flows_;
  std::mutex log_mutex_;
  std::thread thread_;
};

}  // namespace caisson::host
