// SPDX-License-Identifier: Apache-2.0
// The node host of a run, when the run needs one.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/console.h"
#include "cli/node_host_arguments.h"
#include "host/node_host.h"
#include "workflow/ir.h"

namespace caisson::cli {

// Starts it when `graph` names types that are not native; else, or when the arguments name none,
// gives null. Without a list of types it stays off, with a warning. Fails as NodeHost::Start does.
Result<std::unique_ptr<host::NodeHost>> OpenNodeHost(const NodeHostArguments& arguments,
                                                     const workflow::Graph& graph,
                                                     Console& console);

}  // namespace caisson::cli
