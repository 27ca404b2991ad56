// SPDX-License-Identifier: Apache-2.0
#include "nodes/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

// true, false and null have other names here than str() has for them.
std::string FormText(const json::Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  return value.is_null() ? "" : PyStr(value);
}

}  // namespace

Result<http::OutboundTimes> TimesOf(const json::Value& timeout_seconds) {
  http::OutboundTimes times;
  times.connect.reset();
  times.idle.reset();
  if (timeout_seconds.is_null()) return times;
  if (!timeout_seconds.is_number()) {
    return NodeFailed("timeout must be a number of seconds, not " +
                      std::string(PyType(timeout_seconds)));
  }
  const double most = std::chrono::duration<double>(times.total).count();
  // Written so that a NaN becomes 0.
  const double seconds =
      timeout_seconds.ToDouble() > 0 ? std::min(timeout_seconds.ToDouble(), most) : 0;
  times.idle = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  times.connect = times.idle;
  return times;
}

Result<http::OutboundResponse> Exchange(const Visit& visit, const http::OutboundRequest& request) {
  CAISSON_ASSIGN(http::Outbound* const network, visit.host.Network());
  return network->Send(request, nullptr, {});
}

Result<void> RaiseForStatus(const http::OutboundResponse& response) {
  if (response.status >= 200 && response.status < 300) return {};
  constexpr std::string_view kKinds[] = {"Informational response", "", "Redirect response",
                                         "Client error", "Server error"};
  const int hundreds = response.status / 100;
  const std::string_view kind = hundreds >= 1 && hundreds <= 5
                                    ? kKinds[static_cast<std::size_t>(hundreds - 1)]
                                    : std::string_view("Invalid status code");
  std::string message =
      fmt::format("{} '{} {}' for url '{}'", kind, response.status, response.reason, response.url);
  if (const std::string* location = response.headers.Find("Location");
      location != nullptr && hundreds == 3) {
    message += fmt::format("\nRedirect location: '{}'", *location);
  }
  return NodeFailed(std::move(message));
}

std::string FormEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '.' || c == '-' || c == '~';
    if (plain) {
      encoded += c;
    } else if (c == ' ') {
      encoded += '+';
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string FormOf(const json::Object& fields) {
  std::string form;
  const auto add = [&](const std::string& name, const json::Value& value) {
    if (!form.empty()) form += '&';
    form += FormEncode(name) + "=" + FormEncode(FormText(value));
  };
  for (const auto& [name, value] : fields) {
    if (value.is_array()) {
      for (const json::Value& item : value.as_array()) add(name, item);
    } else {
      add(name, value);
    }
  }
  return form;
}

}  // namespace caisson::nodes
