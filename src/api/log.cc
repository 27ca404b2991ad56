// SPDX-License-Identifier: Apache-2.0
#include "api/log.h"

#include <unistd.h>

#include <chrono>

#include "api/text.h"
#include "json/writer.h"

namespace caisson::api {

void Log::Say(std::string_view level, std::string_view message, json::Object fields) {
  constexpr json::WriteOptions kEscaped{.ensure_ascii = true};
  auto line = json::Write(json::Object{{"time", Timestamp(NowMilliseconds())},
                                       {"level", level},
                                       {"message", ValidUtf8(message)}},
                          kEscaped);
  const bool has_fields = !fields.empty();
  const auto more = json::Write(json::Value(std::move(fields)), kEscaped);
  if (!line || !more) return;
  if (has_fields) {  // one object of both
    line->back() = ',';
    *line += std::string_view(*more).substr(1);
  }
  *line += '\n';
  // One call a line, so that lines of several threads do not mix.
  [[maybe_unused]] const ssize_t written = write(descriptor_, line->data(), line->size());
}

}  // namespace caisson::api
