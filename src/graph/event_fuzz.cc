// SPDX-License-Identifier: Apache-2.0
// Any text as the record of a run: lines of events, or a snapshot. Nothing in it may crash the
// reader; what is read has a text that reads back as the same, and what can be applied to a
// progress leaves one whose JSON form reads back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graph/progress.h"
#include "graph/run.h"
#include "json/reader.h"
#include "json/writer.h"

namespace {

using caisson::graph::KeptEvent;
using caisson::graph::Progress;

void ReadSnapshot(const caisson::json::Value& value) {
  const auto progress = Progress::FromJson(value);
  if (!progress) return;
  const auto text = caisson::json::Write(progress->ToJson());
  if (!text) return;  // nested as deeply as a writer goes
  const auto again = Progress::FromJson(*caisson::json::Read(*text));
  if (!again || *caisson::json::Write(again->ToJson()) != *text) std::abort();
  (void)progress->Latest();
}

void ReadEvent(const caisson::json::Value& value, Progress& progress, bool& good) {
  const auto event = KeptEvent::FromJson(value);
  if (!event) return;
  std::string text;
  if (event->View().AppendText(text, 1u << 20)) {
    const auto again = KeptEvent::FromJson(*caisson::json::Read(text));
    std::string same;
    if (!again || !again->View().AppendText(same, 1u << 20) || same != text) std::abort();
  }
  good = good && progress.Apply(*event).has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Progress progress(caisson::graph::InitialState(caisson::json::Object{}, {}, "r"));
  bool good = true;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto value = caisson::json::Read(rest.substr(0, end))) {
      ReadSnapshot(*value);
      ReadEvent(*value, progress, good);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (good) ReadSnapshot(progress.ToJson());
  return 0;
}
