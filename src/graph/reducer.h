// SPDX-License-Identifier: Apache-2.0
// From what a node gave to what the state becomes: promotion of results, the reducers of the
// state's fields, and the bounds on values. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "graph/messages.h"
#include "json/value.h"
#include "nodes/state.h"

namespace caisson::graph {

// Values beyond these end the run: what is deeper or heavier cannot be handed on safely.
inline constexpr int kMaxValueDepth = 600;
inline constexpr std::size_t kMaxValueBytes = 256u << 20;

// The fields that one node writes. Its node_results holds the entries to be merged.
using Update = nodes::State;

// A result becomes an update: members named like state fields go there, `node_results` is merged,
// the rest is the node's own entry. Fails with graph.node_failed when node_results is no object.
Result<Update> Promote(const std::string& node_id, json::Value result);

// A result that is an update of the state as a whole: members that are no state fields are dropped.
// Fails with graph.node_failed when it is no object.
Result<Update> StateUpdate(json::Value result);

// About what a value costs: its text, and 64 bytes for each value in it. What is referred to
// several times counts each time.
std::size_t Weigh(const json::Value& value);
std::size_t Weigh(const Update& update);

// Gives the value's weight; fails with graph.too_deep or graph.too_large.
Result<std::size_t> CheckBounds(const json::Value& value);

// One writer's update within a step.
struct StepWrite {
  std::string_view node_id;
  const Update* update;
};

// A failure names the writer that caused it.
struct WriteFault {
  std::string_view node_id;
  Status status;
};

// Applies the updates of one step, in that order; all or nothing. Gives by how much the state has
// become heavier. Fails with graph.conflict or graph.message. When `delta` is given, what was
// written is added to it as well (its messages are the state's whole list).
std::expected<std::int64_t, WriteFault> ApplyStep(nodes::State& state,
                                                  std::span<const StepWrite> writes,
                                                  const IdMaker& new_id, Update* delta);

}  // namespace caisson::graph
