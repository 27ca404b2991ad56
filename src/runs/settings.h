// SPDX-License-Identifier: Apache-2.0
// What a run was started with, kept with it, so that it goes on under the same rules.
#pragma once

#include "base/status.h"
#include "graph/run.h"
#include "json/value.h"

namespace caisson::runs {

struct Settings {
  json::Value document = json::Object{};  // the run's configuration as it was given
  graph::Policy policy = graph::Policy::kDrop;
  workflow::CodeRuntimes runtimes;
  isolate::Limits limits;
  std::size_t state_bytes = graph::kDefaultStateBytes;
  std::optional<std::chrono::milliseconds> timeout;  // of each attempt; wins over the document's
};

json::Value ToJson(const Settings& settings);
// Fails with runs.damaged.
Result<Settings> SettingsFromJson(const json::Value& value);

// The configuration that they come to. Fails with graph.config.
Result<graph::RunConfig> ConfigOf(const Settings& settings, std::string run_id);

}  // namespace caisson::runs
