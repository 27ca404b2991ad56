// SPDX-License-Identifier: Apache-2.0
// Turns a draft into the immutable graph: nested graphs, the graphs of workflow tools, the
// entrypoint; and warns of what its shape makes likely to go wrong. Each draft is resolved once,
// however often it is referred to. Internal to the compiler.
#pragma once

#include <memory>

#include "workflow/draft.h"
#include "workflow/interpreter.h"

namespace caisson::workflow {

// Null when the draft is nested in itself, too deeply, or expands beyond the limit (diagnosed).
std::shared_ptr<FinishedGraph> Resolve(GraphDraft& draft, Session& session);

}  // namespace caisson::workflow
