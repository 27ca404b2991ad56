// SPDX-License-Identifier: Apache-2.0
// A run's events as streams of one kind, after LangGraph's stream modes: what each node writes, the
// state after each step, pieces of models' answers, or everything. docs/events.md describes the
// lines.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "graph/delta.h"
#include "graph/events.h"
#include "graph/progress.h"

namespace caisson::graph {

enum class StreamMode : std::uint8_t { kUpdates, kValues, kMessages, kDebug };
std::optional<StreamMode> FindStreamMode(std::string_view name);  // "updates", "values", ...

class Stream final : public EventSink {
 public:
  using Take = std::function<void(const json::Value& line)>;
  // `progress` is where the run begins, or goes on from. `take` is called for each line, one at a
  // time.
  Stream(std::set<StreamMode> modes, Progress progress, Take take)
      : modes_(std::move(modes)), progress_(std::move(progress)), take_(std::move(take)) {}

  void OnEvent(const Event& event) override;
  void OnDelta(const Delta& delta);

 private:
  void Values(const Event& event);

  const std::set<StreamMode> modes_;
  Progress progress_;
  const Take take_;
};

}  // namespace caisson::graph
