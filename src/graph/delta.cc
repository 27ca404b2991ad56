// SPDX-License-Identifier: Apache-2.0
#include "graph/delta.h"

namespace caisson::graph {

json::Value Delta::ToJson() const {
  const bool is_message = kind == nodes::DeltaKind::kMessage;
  return json::Object{{"event", is_message ? "message_delta" : "tool_progress"},
                      {"after", after},
                      {"run_id", run_id},
                      {"graph", graph_path},
                      {"node", node_id},
                      {is_message ? "delta" : "progress", data == nullptr ? json::Value() : *data}};
}

}  // namespace caisson::graph
