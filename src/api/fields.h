// SPDX-License-Identifier: Apache-2.0
// The fields of a JSON request, typed. A wrong type is api.field, whose details name the field and
// whose message has the JSON path and what is wanted; null and absence are the same; fields that
// nobody asks for are ignored, so that newer clients work with older servers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/exchange.h"
#include "json/value.h"

namespace caisson::api {

class Fields {
 public:
  // The body as an object; an empty body is an empty object. Fails with api.body.
  static Result<Fields> Read(http::Exchange& exchange, std::size_t limit);
  explicit Fields(json::Value object) : object_(std::move(object)) {}

  Result<std::optional<std::string>> Text(std::string_view name) const;
  Result<std::string> RequiredText(std::string_view name) const;  // not empty
  Result<std::optional<std::int64_t>> Integer(std::string_view name) const;
  Result<std::optional<double>> Number(std::string_view name) const;
  Result<std::optional<bool>> Boolean(std::string_view name) const;
  Result<std::optional<std::vector<std::string>>> TextList(std::string_view name) const;
  Result<std::optional<std::map<std::string, std::string>>> TextMap(std::string_view name) const;
  Result<std::optional<Fields>> Object(std::string_view name) const;
  Result<std::vector<Fields>> ObjectList(std::string_view name) const;
  // Present and neither null, "", [], {} nor false.
  bool IsSet(std::string_view name) const;
  const std::string& bytes() const { return bytes_; }  // the body as it came

 private:
  const json::Value* Find(std::string_view name) const;
  std::unexpected<Status> Wrong(std::string_view name, std::string_view place,
                                std::string_view wanted, const json::Value& found) const;

  json::Value object_;
  std::string path_;  // "pty."
  std::string bytes_;
};

}  // namespace caisson::api
