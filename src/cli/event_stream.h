// SPDX-License-Identifier: Apache-2.0
// Writes the events of a run to a descriptor, one JSON document a line, as they happen; piece by
// piece, so that an event costs no copy of the state that it shows.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/console.h"
#include "graph/delta.h"
#include "graph/events.h"

namespace caisson::cli {

class EventStream final : public graph::EventSink {
 public:
  // To standard error, under the console's lock.
  explicit EventStream(Console& console) : console_(console) {}
  // Makes or empties the file. Fails with cli.file_unwritable.
  Result<void> Open(const std::string& path);
  ~EventStream() override;
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  void OnEvent(const graph::Event& event) override;
  void Flush() override;
  // One at a time, and never during an event.
  void OnDelta(const graph::Delta& delta);
  // A line of its own, in place of events.
  void Write(const json::Value& document);
  // cli.file_unwritable when an event could not be written; later ones were then left out.
  Result<void> Finish() const;

 private:
  // The console's lock, when that is where lines go.
  std::unique_lock<std::mutex> Hold();
  void FlushHeld();
  // False when the event has no JSON form; nothing was written then.
  bool WriteLine(const json::Value& document);
  void WriteAll(std::string_view text);

  Console& console_;
  std::string lines_;  // not written yet
  int descriptor_ = 2;
  int error_ = 0;
  std::string name_ = "standard error";
};

}  // namespace caisson::cli
