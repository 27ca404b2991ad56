// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "errors/http.h"

namespace caisson::http {
namespace {

constexpr long kTransferBuffer = 256 << 10;

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

// What one request leaves behind while it runs.
struct Transfer {
  const ClientRequest& request;
  ClientAnswer answer = {};
  Result<void> failed;  // of the caller's own functions
};

std::size_t TakeHeader(char* bytes, std::size_t, std::size_t size, void* user) {
  ClientAnswer& answer = static_cast<Transfer*>(user)->answer;
  std::string_view line(bytes, size);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // a new head; what came before was interim
    answer = {};
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos) answer.status = std::atoi(line.data() + space + 1);
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
    answer.headers.Add(line.substr(0, colon), value);
  }
  return size;
}

std::size_t TakeBody(char* bytes, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  ClientAnswer& answer = transfer.answer;
  if (transfer.request.download && answer.status >= 200 && answer.status < 300) {
    transfer.failed = transfer.request.download({bytes, size});
  } else if (answer.body.size() + size > kMostClientBody) {
    transfer.failed = Fail(errors::kHttpBroken, "the answer of the server is too large");
  } else {
    answer.body.append(bytes, size);
  }
  return transfer.failed ? size : CURL_WRITEFUNC_ERROR;
}

std::size_t GiveBody(char* into, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto got = transfer.request.upload({into, size});
  if (got) return *got;
  transfer.failed = Fail(got.error());
  return CURL_READFUNC_ABORT;
}

int IsStopped(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->request.stop.stop_requested() ? 1 : 0;
}

}  // namespace

struct Client::Handle {
  ClientOptions options;
  std::unique_ptr<CURL, CurlDeleter> curl;
  char error[CURL_ERROR_SIZE] = "";

  void SetConnection();
  void SetRequest(const ClientRequest& request);
  Status Explain(CURLcode code) const;
};

void Client::Handle::SetConnection() {
  CURL* raw = curl.get();
  // Clears the options but keeps the connection.
  curl_easy_reset(raw);
  curl_easy_setopt(raw, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(raw, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(raw, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(raw, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(raw, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(raw, CURLOPT_BUFFERSIZE, kTransferBuffer);
  curl_easy_setopt(raw, CURLOPT_UPLOAD_BUFFERSIZE, kTransferBuffer);
  if (!options.unix_socket.empty()) {
    curl_easy_setopt(raw, CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
    curl_easy_setopt(raw, CURLOPT_NOPROXY, "*");
  }
  if (!options.ca_file.empty()) curl_easy_setopt(raw, CURLOPT_CAINFO, options.ca_file.c_str());
}

void Client::Handle::SetRequest(const ClientRequest& request) {
  CURL* raw = curl.get();
  curl_easy_setopt(raw, CURLOPT_URL, (options.base_url + request.path).c_str());
  if (request.upload) {
    curl_easy_setopt(raw, CURLOPT_UPLOAD, 1L);
    // A kept connection that the server has just closed would need the upload from its start.
    curl_easy_setopt(raw, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(raw, CURLOPT_READFUNCTION, GiveBody);
    curl_easy_setopt(
        raw, CURLOPT_INFILESIZE_LARGE,
        request.upload_size ? static_cast<curl_off_t>(*request.upload_size) : curl_off_t{-1});
  } else if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    curl_easy_setopt(raw, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(raw, CURLOPT_POSTFIELDS, request.body.c_str());
  } else if (request.method == "HEAD") {
    curl_easy_setopt(raw, CURLOPT_NOBODY, 1L);
  }
  curl_easy_setopt(raw, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(raw, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
}

Status Client::Handle::Explain(CURLcode code) const {
  const std::string why = *error ? error : curl_easy_strerror(code);
  const std::string& where = options.unix_socket.empty() ? options.base_url : options.unix_socket;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return {errors::kHttpUnreachable, fmt::format("cannot reach {}: {}", where, why)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return {errors::kHttpUntrusted, fmt::format("{} is not trusted: {}", where, why)};
    case CURLE_ABORTED_BY_CALLBACK:
      return {errors::kHttpBroken, fmt::format("the request to {} was stopped", where)};
    default:
      return {errors::kHttpBroken, fmt::format("the request to {} failed: {}", where, why)};
  }
}

Client::Client(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::Make(ClientOptions options) {
  if (!options.base_url.starts_with("http://") && !options.base_url.starts_with("https://")) {
    return Fail(errors::kHttpMisuse, fmt::format("\"{}\" is no URL of a server; it begins with "
                                                 "http:// or https://",
                                                 options.base_url));
  }
  while (options.base_url.ends_with('/')) options.base_url.pop_back();
  InitializeOnce();
  auto handle = std::make_unique<Handle>();
  handle->options = std::move(options);
  handle->curl.reset(curl_easy_init());
  if (!handle->curl) return Fail(errors::kHttpBroken, "libcurl cannot be set up");
  return Client(std::move(handle));
}

Result<ClientAnswer> Client::Send(const ClientRequest& request) {
  Transfer transfer{request};
  std::unique_ptr<curl_slist, CurlDeleter> fields;
  const auto add = [&](const Field& field) -> Result<void> {
    if (!IsToken(field.name) || !IsFieldValue(field.value)) {
      return Fail(errors::kHttpMisuse, fmt::format("the field {} is malformed", field.name));
    }
    // An empty value is told from a field to be left out by the semicolon.
    const std::string line =
        field.value.empty() ? field.name + ";" : fmt::format("{}: {}", field.name, field.value);
    curl_slist* longer = curl_slist_append(fields.get(), line.c_str());
    (void)fields.release();
    fields.reset(longer);
    return {};
  };
  for (const Field& field : handle_->options.headers) CAISSON_TRY(add(field));
  for (const Field& field : request.headers) CAISSON_TRY(add(field));
  handle_->SetConnection();
  handle_->SetRequest(request);
  CURL* raw = handle_->curl.get();
  curl_easy_setopt(raw, CURLOPT_HTTPHEADER, fields.get());
  curl_easy_setopt(raw, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(raw, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(raw, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(raw, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(raw, CURLOPT_READDATA, &transfer);
  curl_easy_setopt(raw, CURLOPT_XFERINFOFUNCTION, IsStopped);
  curl_easy_setopt(raw, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(raw, CURLOPT_NOPROGRESS, 0L);
  handle_->error[0] = '\0';
  const CURLcode code = curl_easy_perform(raw);
  if (!transfer.failed) return Fail(transfer.failed.error());
  if (code != CURLE_OK) return Fail(handle_->Explain(code));
  return std::move(transfer.answer);
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace caisson::http
