// SPDX-License-Identifier: Apache-2.0
// Decides where a request of a node may go, and to which addresses it is pinned. (outbound.h)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/outbound.h"

namespace caisson::http {

struct Target {
  std::string scheme;  // "http", "https"; "smtp" for mail
  std::string host;    // as curl knows it: lower case, ASCII; an address without brackets
  std::uint16_t port = 0;
  std::string url;  // the whole, for curl; of mail: empty
  bool SameOrigin(const Target& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
};

// Reads an absolute URL. Fails with outbound.bad_request, or outbound.refused for another scheme or
// a URL with a password.
Result<Target> ReadTarget(const std::string& url);
// `location` as a redirect from `from` means it. Fails with outbound.redirects or as ReadTarget.
Result<Target> ReadRedirect(const Target& from, const std::string& location);

class Guard {
 public:
  explicit Guard(const OutboundPolicy& policy) : policy_(policy) {}
  // The addresses to which a connection to `target` may be made: all that it has. Fails with
  // outbound.refused when any of them is closed, or as Resolver::Resolve does.
  Result<std::vector<IpAddress>> Check(const Target& target,
                                       std::chrono::steady_clock::time_point deadline,
                                       const std::function<bool()>& give_up) const;

 private:
  bool IsGranted(const Target& target) const;
  const OutboundPolicy& policy_;
};

}  // namespace caisson::http
