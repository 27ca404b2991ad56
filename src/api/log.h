// SPDX-License-Identifier: Apache-2.0
// The service's log: one JSON object a line on a descriptor. Whatever is foreign in it is escaped
// by that form. Thread-safe; a line that cannot be written is lost.
#pragma once

#include <string_view>
#include <utility>

#include "json/value.h"

namespace caisson::api {

class Log {
 public:
  explicit Log(int descriptor) : descriptor_(descriptor) {}

  // {"time","level","message", …fields}
  void Say(std::string_view level, std::string_view message, json::Object fields = {});
  void Info(std::string_view message, json::Object fields = {}) {
    Say("info", message, std::move(fields));
  }
  void Error(std::string_view message, json::Object fields = {}) {
    Say("error", message, std::move(fields));
  }

 private:
  int descriptor_;  // not owned
};

}  // namespace caisson::api
