// SPDX-License-Identifier: Apache-2.0
// Writes the events of a run to a descriptor, one JSON document a line, as they happen.
#pragma once

#include <string>

#include "base/status.h"
#include "graph/events.h"

namespace caisson::cli {

class EventStream final : public graph::EventSink {
 public:
  // To standard error.
  EventStream() = default;
  // Makes or empties the file. Fails with cli.file_unwritable.
  Result<void> Open(const std::string& path);
  ~EventStream() override;
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  void OnEvent(const graph::Event& event) override;
  // cli.file_unwritable when an event could not be written; later ones were then left out.
  Result<void> Finish() const;

 private:
  int descriptor_ = 2;
  int error_ = 0;
  std::string name_ = "standard error";
};

}  // namespace caisson::cli
