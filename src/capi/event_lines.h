// SPDX-License-Identifier: Apache-2.0
// The events of a run as JSON text for the caller's function, and what the run says of itself
// besides.
#pragma once

#include <mutex>
#include <stop_token>
#include <string_view>

#include "capi/engine.h"
#include "graph/delta.h"
#include "graph/events.h"
#include "json/value.h"
#include "nodes/node.h"

namespace caisson::capi {

// One run's. `sink` outlives it; once it gives false, `stop` is requested and nothing more is told.
class EventLines final : public graph::EventSink {
 public:
  EventLines(const LineSink& sink, std::stop_source stop) : sink_(sink), stop_(std::move(stop)) {}
  void OnEvent(const graph::Event& event) override { Tell(event.ToJson()); }
  // One at a time, and never during an event.
  void OnDelta(const graph::Delta& delta) { Tell(delta.ToJson()); }

 private:
  void Tell(json::Value event);

  const LineSink& sink_;
  std::stop_source stop_;
};

// Thread-safe.
class RunLog {
 public:
  void Add(nodes::LogLevel level, std::string_view message);
  json::Array Take();

 private:
  std::mutex mutex_;
  json::Array entries_;
};

}  // namespace caisson::capi
