// SPDX-License-Identifier: Apache-2.0
// A blocking HTTP/1.1 client for the command line: one server, one connection that is kept alive,
// TLS with verification, Unix sockets, streams both ways. Follows no redirects, so that credentials
// go nowhere else. A Client is used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http/headers.h"

namespace caisson::http {

struct ClientOptions {
  std::string base_url;     // "http://127.0.0.1:8080", "https://host/api"; a path is kept
  std::string unix_socket;  // its path: connects there, whatever the host of base_url
  Headers headers;          // of every request (X-Api-Key)
  std::string ca_file;      // PEM; empty: the authorities of the system
  std::chrono::milliseconds connect_timeout{10'000};
};

struct ClientRequest {
  std::string method = "GET";
  std::string path;  // "/v1/sandboxes?limit=5", encoded (PercentEncode)
  Headers headers;
  std::string body;
  // In place of body: is called for more until it returns 0. Without a size the upload is chunked.
  std::function<Result<std::size_t>(std::span<char>)> upload;
  std::optional<std::uint64_t> upload_size;
  // In place of ClientAnswer::body, for answers of 2xx; a Status ends the request with that Status.
  std::function<Result<void>(std::string_view)> download;
  std::chrono::milliseconds timeout{0};  // of the whole request; 0: none
  std::stop_token stop;                  // ends the request within a second, with http.broken
};

struct ClientAnswer {
  int status = 0;
  Headers headers;
  std::string body;  // at most kMostClientBody, else http.broken
};

inline constexpr std::size_t kMostClientBody = 64 << 20;

class Client {
 public:
  // http.misuse when the options make no URL.
  static Result<Client> Make(ClientOptions options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Any status is an answer. http.unreachable, http.untrusted, http.broken (also when `upload` or
  // the time ended), or what `upload` and `download` failed with.
  Result<ClientAnswer> Send(const ClientRequest& request);

 private:
  struct Handle;
  explicit Client(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

// For a segment of a path or a value of a query: everything but letters, digits and "-._~".
std::string PercentEncode(std::string_view text);

}  // namespace caisson::http
