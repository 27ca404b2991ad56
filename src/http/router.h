// SPDX-License-Identifier: Apache-2.0
// Chooses the handler of a request by method and path. Built before the server starts and not
// changed afterwards, so that threads share it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/exchange.h"

namespace caisson::http {

// Splits `target` (origin form, or "*") into raw_path, segments and query. http.bad_request for a
// wrong percent code, a NUL, or a segment that decodes to "." or "..".
Result<void> ParseTarget(Request& request);

class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // "GET /v1/sandboxes/{id}/files": {name} takes one non-empty segment, {name...} at the end takes
  // all that is left, as it came (still encoded; may be empty), "*" as the method takes every
  // method. Literal segments win over {name}. GET takes HEAD too where no HEAD is added. A
  // malformed or repeated pattern is told by Server::Start.
  void Add(std::string_view pattern, Handler handler);

  // Is asked before the patterns, and before the path is looked at: for requests that the host name
  // decides. Returns nullptr to leave a request to the patterns. The handler outlives the server.
  void SetHostRoute(std::function<const Handler*(const Request&)> route);

  // http.misuse when a pattern is malformed or stands twice.
  Result<void> Check() const;

  // Fills what the request's target says. Fails with http.bad_request, http.not_found, or
  // http.method_not_allowed, whose `details` are the value for Allow.
  Result<const Handler*> Route(Request& request) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
  std::function<const Handler*(const Request&)> host_route_;
  std::vector<std::string> problems_;
};

}  // namespace caisson::http
