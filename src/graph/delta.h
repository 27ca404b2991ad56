// SPDX-License-Identifier: Apache-2.0
// What a run shows while a node is still at work: pieces of a model's answer, what tools do. Deltas
// are not events: they have no number and no journal keeps them, so whoever misses one finds what
// it told of in the event that follows.
#pragma once

#include <cstdint>
#include <string_view>

#include "json/value.h"
#include "nodes/node.h"

namespace caisson::graph {

struct Delta {
  nodes::DeltaKind kind = nodes::DeltaKind::kMessage;
  std::uint64_t after = 0;  // the number of the last event before it
  std::string_view run_id;
  std::string_view graph_path;  // as Event::graph_path; of a tool's graph "agent:tool"
  std::string_view node_id;
  const json::Value* data = nullptr;  // of kind, see docs/agents.md

  json::Value ToJson() const;
};

}  // namespace caisson::graph
