// SPDX-License-Identifier: Apache-2.0
#include "api/log.h"

#include <unistd.h>

#include <chrono>

#include "api/text.h"
#include "json/writer.h"

namespace caisson::api {

void Log::Say(std::string_view level, std::string_view message, const json::Object& fields) {
  json::Object line{
      {"time", Timestamp(NowMilliseconds())}, {"level", level}, {"message", ValidUtf8(message)}};
  for (const auto& [key, value] : fields) line.Set(key, value);
  auto text = json::Write(json::Value(std::move(line)), {.ensure_ascii = true});
  if (!text) return;
  *text += '\n';
  // One call a line, so that lines of several threads do not mix.
  [[maybe_unused]] const ssize_t written = write(descriptor_, text->data(), text->size());
}

}  // namespace caisson::api
