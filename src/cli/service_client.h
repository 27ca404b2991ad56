// SPDX-License-Identifier: Apache-2.0
// What `caisson sandbox` says to a service: JSON calls, streams of NDJSON, files.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "cli/service_arguments.h"
#include "http/client.h"
#include "json/value.h"

namespace caisson::cli {

class ServiceClient {
 public:
  // Of the options, else CAISSON_URL (http://127.0.0.1:8787) and CAISSON_API_KEY. Fails with
  // cli.usage when there is no key.
  static Result<ServiceClient> Make(const ConnectionArguments& arguments);

  // The `data` of the answer; what the service refuses is a Status with its code and words.
  Result<json::Value> Call(const std::string& method, const std::string& path,
                           const json::Value& body = {});
  // Each line of an NDJSON answer. `take` ends the stream with false.
  Result<void> Stream(const std::string& method, const std::string& path, const json::Value& body,
                      const std::function<Result<bool>(const json::Value&)>& take,
                      const std::stop_token& stop = {});
  // For bodies that are no JSON.
  Result<http::ClientAnswer> Send(const http::ClientRequest& request);

  // "/v1/sandboxes/<id>" of an id or a name.
  Result<std::string> PathOf(const std::string& sandbox);
  // All pages of a list.
  Result<json::Array> List(const std::string& path_with_query);

 private:
  explicit ServiceClient(http::Client client) : client_(std::move(client)) {}
  http::Client client_;
};

// A member that is text, "" when there is none; likewise numbers.
std::string TextOf(const json::Value& object, std::string_view key);
std::int64_t NumberOf(const json::Value& object, std::string_view key);

}  // namespace caisson::cli
