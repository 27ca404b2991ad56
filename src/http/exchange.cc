// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/http.h"

namespace caisson::http {

const std::string* Request::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string_view Request::Parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return {};
}

Result<std::string> Exchange::ReadBody(std::size_t limit) {
  const auto too_large = [&] {
    return Fail(errors::kHttpBodyTooLarge,
                fmt::format("the body of the request is larger than {} bytes", limit));
  };
  const auto declared = request().body_length;
  if (declared && *declared > limit) return too_large();
  std::string body;
  std::size_t size = 0;
  // One byte beyond the limit tells a body that is too large from one that just fits.
  const std::size_t most = declared ? static_cast<std::size_t>(*declared) : limit + 1;
  while (true) {
    if (size == body.size()) body.resize(std::min(most, std::max<std::size_t>(4096, size * 2)));
    if (size == body.size()) break;
    CAISSON_ASSIGN(const std::size_t got,
                   ReadSome(std::span(body.data() + size, body.size() - size)));
    if (got == 0) break;
    size += got;
    if (size > limit) return too_large();
  }
  body.resize(size);
  return body;
}

}  // namespace caisson::http
