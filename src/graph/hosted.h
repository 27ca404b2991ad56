// SPDX-License-Identifier: Apache-2.0
// Nodes that a node host runs (host/provider.h): planning one and running one. Its templates and
// credentials are resolved here, so that the host sees neither the resolver nor a placeholder that
// a value brought in.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/context.h"
#include "graph/planned.h"
#include "graph/template.h"
#include "host/provider.h"
#include "workflow/ir.h"

namespace caisson::graph {

// Asks `provider` whether it would take the configuration. Fails with nodes.config, host.* codes,
// or graph.not_native when the configuration holds workflow tools, which a host cannot run.
Result<HostedPart> PlanHosted(host::Provider& provider, const workflow::BuiltinNode& node);

// A node at `instance`, the path of its place in the run: visits of one place share the node. Gives
// an object of state fields, for UpdateOf.
std::expected<json::Value, host::Failure> RunHosted(RunContext& context, Interrupt& interrupt,
                                                    const PlannedNode& node,
                                                    const std::string& instance,
                                                    const nodes::State& state);

// A step of a SubWorkflowNode of type `type`: what its templates say in `outer` is answered there,
// the rest from `state`.
Result<json::Value> RunHostedStep(RunContext& context, Interrupt& interrupt, std::string_view type,
                                  const std::string& name, const json::Value& step,
                                  const nodes::State& outer, const nodes::State& state);

// The state fields of what a host gave; other members are dropped, as the peer does. Fails with
// host.protocol when it is no object, graph.node_failed when its node_results is none.
Result<Update> UpdateOf(const json::Value& value);

}  // namespace caisson::graph
