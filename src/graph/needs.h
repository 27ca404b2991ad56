// SPDX-License-Identifier: Apache-2.0
// What the nodes of a plan need of a run's surroundings. A node that is reached without it fails;
// asking before the run begins tells of it before anything has happened.
#pragma once

#include "base/status.h"
#include "graph/plan.h"
#include "graph/run.h"

namespace caisson::graph {

// Fails with outbound.no_network, nodes.no_blobs or nodes.no_items, naming the first node that
// `services` lack something for; steps of sub-workflows whose type is plain text count.
Result<void> CheckNeeds(const Plan& plan, const Services& services);

}  // namespace caisson::graph
