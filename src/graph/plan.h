// SPDX-License-Identifier: Apache-2.0
// A Plan is an IR made ready to run: types resolved, configurations checked and their templates
// parsed, bodies prepared, edges turned into indexes, subgraphs likewise. Made once per IR,
// immutable, shared by any number of runs on any threads. It runs nothing by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/status.h"
#include "host/provider.h"
#include "nodes/node.h"
#include "workflow/body.h"
#include "workflow/ir.h"

namespace caisson::graph {

struct PlanOptions {
  workflow::CompileOptions compile;  // for the check of the bodies
  // Runs types that are not native; may be null, else it must outlive the plan's runs.
  host::Provider* host = nullptr;
};

struct PlannedGraph;  // graph/planned.h

class Plan {
 public:
  // Fails with
  //   config.unknown_step_type  a step of a SubWorkflowNode whose type does not exist; likewise
  //   graph.not_native    types that exist, but are neither native nor served by the host; the
  //   message names every such node graph.build         edges that cannot be built (START as a
  //   target, a second branch, ...) nodes.config        "Failed to construct node '<id>' of type
  //   '<T>': <what and where>" graph.body          a body that breaks a rule of section 5 of the
  //   format; details: diagnostics host.*              the host could not be asked about a
  //   configuration
  // `graph` should have passed workflow::Compile or LoadIr; references are checked here again.
  // `table` must outlive the plan.
  static Result<Plan> Create(std::shared_ptr<const workflow::Graph> graph,
                             const nodes::Table& table = nodes::BuiltinNodes(),
                             const PlanOptions& options = {});

  const PlannedGraph& root() const { return *root_; }
  const workflow::Graph& source() const { return *source_; }
  const nodes::Table& table() const { return *table_; }
  // The ids of all code nodes, those of subgraphs too; a run of some needs an isolate::Runtime.
  const std::set<std::string, std::less<>>& code_nodes() const { return code_nodes_; }
  // Nodes of this graph and its subgraphs.
  std::size_t node_count() const { return node_count_; }

 private:
  std::shared_ptr<const workflow::Graph> source_;
  std::shared_ptr<const PlannedGraph> root_;
  const nodes::Table* table_ = nullptr;
  std::set<std::string, std::less<>> code_nodes_;
  std::size_t node_count_ = 0;
};

}  // namespace caisson::graph
