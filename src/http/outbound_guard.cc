// SPDX-License-Identifier: Apache-2.0
#include "http/outbound_guard.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "errors/outbound.h"
#include "http/web_url.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostUrlBytes = 64u << 10;

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

std::string Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

std::string Shown(const std::string& url) { return url.substr(0, 300); }

// Writes the host in its ASCII form back into the URL: libcurl's own conversion depends on the
// locale.
Result<std::string> HostOf(CURLU* url, const std::string& text) {
  const auto host = AsciiHost(Part(url, CURLUPART_HOST));
  if (!host || host->empty() || curl_url_set(url, CURLUPART_HOST, host->c_str(), 0) != CURLUE_OK) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("the URL '{}' has no valid host", Shown(text)));
  }
  if (!Part(url, CURLUPART_ZONEID).empty()) {
    return Fail(errors::kOutboundRefused,
                fmt::format("the URL '{}' names a network interface", Shown(text)));
  }
  if (!host->starts_with('[') || !host->ends_with(']')) return *host;
  return host->substr(1, host->size() - 2);
}

Result<Target> TargetOf(CURLU* url, const std::string& text) {
  Target target;
  target.scheme = Part(url, CURLUPART_SCHEME);
  if (target.scheme != "http" && target.scheme != "https") {
    return Fail(errors::kOutboundRefused,
                fmt::format("the URL '{}' has the scheme '{}'; only http and https are open to "
                            "nodes",
                            Shown(text), target.scheme));
  }
  if (!Part(url, CURLUPART_USER).empty() || !Part(url, CURLUPART_PASSWORD).empty()) {
    return Fail(errors::kOutboundRefused,
                "the URL of a request holds a user name or password, which is not allowed; send "
                "them in a header");
  }
  CAISSON_ASSIGN(target.host, HostOf(url, text));
  const std::string port = Part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (target.port == 0) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("the URL '{}' has no valid port", Shown(text)));
  }
  target.url = Part(url, CURLUPART_URL);
  return target;
}

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// `text` with what may not stand there as %XX; what is encoded already stays.
std::string Encode(std::string_view text, std::string_view forbidden) {
  std::string encoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escape = c == '%' && i + 2 < text.size() && IsHex(text[i + 1]) && IsHex(text[i + 2]);
    const bool plain = c > 0x20 && c < 0x7f && forbidden.find(c) == std::string_view::npos;
    if (escape || (plain && c != '%')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

// What stands behind scheme and host, encoded part by part. libcurl would do it in lower case, and
// a space of a query as a plus sign.
std::string EncodedUrl(const std::string& url) {
  std::size_t begin = url.find("://");
  begin = url.find_first_of("/?#", begin == std::string::npos ? 0 : begin + 3);
  if (begin == std::string::npos) return url;
  const std::size_t fragment = std::min(url.find('#', begin), url.size());
  const std::size_t query = std::min(url.find('?', begin), fragment);
  const std::string_view text = url;
  std::string encoded(text.substr(0, begin));
  encoded += Encode(text.substr(begin, query - begin), "\"<>`{}");
  encoded += Encode(text.substr(query, fragment - query), "\"<>");
  return encoded + Encode(text.substr(fragment), "\"<>`");
}

Result<void> CheckText(const std::string& url) {
  const bool odd = std::ranges::any_of(
      url, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!odd && url.size() <= kMostUrlBytes) return {};
  return Fail(
      errors::kOutboundBadRequest,
      odd ? fmt::format("the URL of {} bytes has a control character in it", url.size())
          : fmt::format("the URL has {} bytes; at most {} are allowed", url.size(), kMostUrlBytes));
}

}  // namespace

Result<Target> ReadTarget(const std::string& url) {
  CAISSON_TRY(CheckText(url));
  const Url parsed(curl_url());
  const CURLUcode code =
      curl_url_set(parsed.get(), CURLUPART_URL, EncodedUrl(url).c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("'{}' is no URL of a request ({}); it begins with http:// or https://",
                            Shown(url), curl_url_strerror(code)));
  }
  return TargetOf(parsed.get(), url);
}

Result<Target> ReadRedirect(const Target& from, const std::string& location) {
  const Url parsed(curl_url());
  const auto set = [&](const std::string& text) {
    return curl_url_set(parsed.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  };
  // libcurl drops the path before a fragment.
  const std::string encoded = location.starts_with('#')
                                  ? from.url.substr(0, from.url.find('#')) + location
                                  : EncodedUrl(location);
  if (!CheckText(location) || set(from.url) != CURLUE_OK || set(encoded) != CURLUE_OK) {
    return Fail(
        errors::kOutboundRedirects,
        fmt::format("{} redirects to '{}', which is no valid URL", from.url, Shown(location)));
  }
  return TargetOf(parsed.get(), location);
}

bool Guard::IsGranted(const Target& target) const {
  return std::ranges::find(policy_.loopback.targets,
                           fmt::format("{}:{}", target.host, target.port)) !=
         policy_.loopback.targets.end();
}

Result<std::vector<IpAddress>> Guard::Check(const Target& target,
                                            std::chrono::steady_clock::time_point deadline,
                                            const std::function<bool()>& give_up) const {
  Resolver& resolver = policy_.resolver != nullptr ? *policy_.resolver : SystemResolver();
  CAISSON_ASSIGN(std::vector<IpAddress> addresses,
                 resolver.Resolve(target.host, deadline, give_up));
  if (addresses.empty()) {
    return Fail(errors::kOutboundUnreachable, "the name '" + target.host + "' has no address");
  }
  const bool granted = IsGranted(target);
  for (const IpAddress& address : addresses) {
    const char* why = ClosedReason(address);
    if (why == nullptr || (granted && std::string_view(why) == "a loopback address")) continue;
    return Fail(errors::kOutboundRefused,
                fmt::format("host '{}' resolves to {}, {}; nodes may send requests only to public "
                            "addresses",
                            target.host, FormatIp(address), why));
  }
  return addresses;
}

}  // namespace caisson::http
