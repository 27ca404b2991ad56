// SPDX-License-Identifier: Apache-2.0
#include "graph/needs.h"

#include <string>

#include "errors/nodes.h"
#include "errors/outbound.h"
#include "graph/planned.h"

namespace caisson::graph {
namespace {

class Checker {
 public:
  Checker(const nodes::Table& table, const Services& services)
      : table_(table), services_(services) {}

  Result<void> Graph(const PlannedGraph& graph) const {
    for (const PlannedNode& node : graph.nodes) {
      if (node.kind == PlannedNode::Kind::kSubgraph) CAISSON_TRY(Graph(*node.graph));
      if (node.kind != PlannedNode::Kind::kNative) continue;
      CAISSON_TRY(Type(*node.native.type, node));
      CAISSON_TRY(Steps(node.native.steps.raw(), node));
    }
    return {};
  }

 private:
  Result<void> Steps(const json::Value& steps, const PlannedNode& node) const {
    if (!steps.is_array()) return {};
    for (const json::Value& step : steps.as_array()) {
      const json::Value* name = step.Find("type");
      const nodes::NodeType* type =
          name != nullptr && name->is_string() ? table_.Find(name->as_string()) : nullptr;
      if (type != nullptr) CAISSON_TRY(Type(*type, node));
      if (const json::Value* inner = step.Find("steps")) CAISSON_TRY(Steps(*inner, node));
    }
    return {};
  }

  Result<void> Type(const nodes::NodeType& type, const PlannedNode& node) const {
    const std::string what = "node '" + node.id + "' (" + std::string(type.name) + ") ";
    switch (type.need) {
      case nodes::Need::kNetwork:
        if (services_.network != nullptr) return {};
        return Fail(errors::kOutboundNoNetwork,
                    what + "sends requests, but this run has no network for its nodes", node.span);
      case nodes::Need::kBlobs:
        if (services_.blobs != nullptr) return {};
        return Fail(errors::kNodesNoBlobs,
                    what + "stores a file, but this run has no store for files", node.span);
      case nodes::Need::kItems:
        if (services_.items != nullptr) return {};
        return Fail(errors::kNodesNoItems, what + "uses the long-term store, but this run has none",
                    node.span);
      case nodes::Need::kNothing:
        break;
    }
    return {};
  }

  const nodes::Table& table_;
  const Services& services_;
};

}  // namespace

Result<void> CheckNeeds(const Plan& plan, const Services& services) {
  return Checker(plan.table(), services).Graph(plan.root());
}

}  // namespace caisson::graph
