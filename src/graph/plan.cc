// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "errors/graph.h"
#include "errors/nodes.h"
#include "graph/hosted.h"
#include "graph/native_check.h"
#include "graph/planned.h"
#include "graph/tool_plan.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using workflow::kEnd;
using workflow::kStart;

std::unexpected<Status> BuildError(std::string message, SourceSpan span = {}) {
  return Fail(errors::kGraphBuild, std::move(message), span);
}

template <typename T>
T At(const std::vector<T>& items, std::size_t index) {
  return index < items.size() ? items[index] : T{};
}

bool MayBlock(const nodes::NodeType& type) {
  return type.name == "DelayNode" || type.name == "SubWorkflowNode" ||
         type.need != nodes::Need::kNothing;
}

// The list in the field of kind kTools; nullptr when there is none.
const json::Array* ToolMarkers(const nodes::NodeType& type, const json::Object& config) {
  for (const nodes::Field& field : type.fields) {
    const json::Value* value =
        field.kind == nodes::FieldKind::kTools ? config.Find(field.name) : nullptr;
    if (value != nullptr && value->is_array()) return &value->as_array();
  }
  return nullptr;
}

// Builds the plan of one graph; subgraphs by a builder of their own.
class GraphBuilder {
 public:
  GraphBuilder(const workflow::Graph& graph, const nodes::Table& table, const PlanOptions& options,
               std::size_t& node_count, std::set<std::string, std::less<>>& code_nodes)
      : source_(graph),
        table_(table),
        options_(options),
        node_count_(node_count),
        code_nodes_(code_nodes) {}

  // In the order in which the peer finds fault: nodes, edges, branches, targets of branches.
  Result<std::shared_ptr<const PlannedGraph>> Build(int depth) {
    // One level more than the compiler writes: the IR check allows it.
    if (depth > workflow::kMaxGraphDepth + 1) {
      return BuildError("nested workflow depth exceeds the maximum of " +
                        std::to_string(workflow::kMaxGraphDepth));
    }
    planned_->nodes.resize(source_.nodes.size());
    CAISSON_TRY(AssignRanks());
    for (std::size_t i = 0; i < source_.nodes.size(); ++i) CAISSON_TRY(BuildNode(i, depth));
    CAISSON_TRY(BuildEdges());
    CAISSON_TRY(BuildBranches());
    for (PlannedNode& node : planned_->nodes) SortUnique(node.targets);
    SortUnique(planned_->first_step);
    return std::shared_ptr<const PlannedGraph>(std::move(planned_));
  }

 private:
  static void SortUnique(std::vector<NodeIndex>& indexes) {
    std::ranges::sort(indexes);
    const auto rest = std::ranges::unique(indexes);
    indexes.erase(rest.begin(), rest.end());
  }

  Result<void> AssignRanks() {
    std::vector<std::size_t> order(source_.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    const auto id = [&](std::size_t i) -> const std::string& { return IdOf(i); };
    std::ranges::sort(order, {}, id);
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      if (!ranks_.emplace(IdOf(order[rank]), static_cast<NodeIndex>(rank)).second) {
        return BuildError("duplicate node id '" + IdOf(order[rank]) + "'",
                          At(source_.spans.nodes, order[rank]));
      }
    }
    return {};
  }

  const std::string& IdOf(std::size_t i) const {
    return std::visit([](const auto& node) -> const std::string& { return node.id; },
                      source_.nodes[i]);
  }

  Result<void> BuildNode(std::size_t i, int depth) {
    PlannedNode& node = planned_->nodes[ranks_.at(IdOf(i))];
    node.id = IdOf(i);
    node.span = At(source_.spans.nodes, i);
    ++node_count_;
    const workflow::Node& source = source_.nodes[i];
    if (const auto* builtin = std::get_if<workflow::BuiltinNode>(&source)) {
      CAISSON_TRY(BuildNative(*builtin, depth, node));
    } else if (const auto* code = std::get_if<workflow::CodeNode>(&source)) {
      CAISSON_TRY(BuildCode(*code, At(source_.spans.bodies, i), node));
    } else {
      CAISSON_TRY(BuildSubgraph(std::get<workflow::SubgraphNode>(source), depth, node));
    }
    for (const char reserved : {':', '|'}) {
      if (node.id.find(reserved) != std::string::npos) {
        return BuildError("'" + std::string(1, reserved) +
                              "' is a reserved character and is not allowed in the node names. "
                              "Rename node '" +
                              node.id + "'.",
                          node.span);
      }
    }
    return {};
  }

  Result<void> BuildNative(const workflow::BuiltinNode& source, int depth, PlannedNode& node) {
    const nodes::NodeType* type = table_.Find(source.type);
    if (type == nullptr && options_.host != nullptr && options_.host->Find(source.type)) {
      return BuildHosted(source, node);
    }
    if (type == nullptr) {
      return Fail(errors::kGraphNotNative,
                  "Unknown built-in node type '" + source.type + "' for node '" + source.id + "'",
                  node.span);
    }
    auto native = PlanNative(*type, source.config, Credentials::kResolve);
    if (!native) {
      return Fail(errors::kNodesConfig,
                  "Failed to construct node '" + source.id + "' of type '" + source.type +
                      "': " + native.error().message,
                  node.span);
    }
    node.kind = PlannedNode::Kind::kNative;
    node.type = type->name;
    node.blocks = MayBlock(*type);
    node.native = *std::move(native);
    const json::Array* markers = ToolMarkers(*type, source.config);
    return markers == nullptr ? Result<void>() : BuildTools(*markers, source, depth, node);
  }

  Result<void> BuildTools(const json::Array& markers, const workflow::BuiltinNode& source,
                          int depth, PlannedNode& node) {
    auto tools = PlanTools(markers, [&](const workflow::Graph& graph) {
      return GraphBuilder(graph, table_, options_, node_count_, code_nodes_).Build(depth + 1);
    });
    if (!tools) {
      Status failure = std::move(tools).error();
      failure.message = "Failed to construct node '" + source.id + "' of type '" + source.type +
                        "': " + failure.message;
      if (!failure.span.known()) failure.span = node.span;
      return Fail(std::move(failure));
    }
    node.native.tools = *std::move(tools);
    return {};
  }

  Result<void> BuildHosted(const workflow::BuiltinNode& source, PlannedNode& node) {
    auto part = PlanHosted(*options_.host, source);
    if (!part) return Fail(part.error().code, part.error().message, node.span);
    node.kind = PlannedNode::Kind::kHosted;
    node.hosted = std::make_unique<HostedPart>(*std::move(part));
    node.type = node.hosted->type;
    node.blocks = true;
    return {};
  }

  Result<void> BuildCode(const workflow::CodeNode& source, SourceSpan body, PlannedNode& node) {
    auto runnable = workflow::PrepareBody(source, options_.compile);
    if (!runnable) return BodyError(source, runnable.error(), body, node.span);
    node.kind = PlannedNode::Kind::kCode;
    node.type = kCodeType;
    node.blocks = true;
    node.code.source = std::move(runnable->source);
    node.code.body_lines = std::move(runnable->body_lines);
    node.code.file_line = body.line;
    for (const std::string& field : source.injected) {
      const json::Value* value = source.config.Find(field);
      if (value == nullptr) continue;
      node.code.injected.emplace_back(field, Template::Parse(*value, Credentials::kPlainText));
    }
    code_nodes_.insert(node.id);
    return {};
  }

  static std::unexpected<Status> BodyError(const workflow::CodeNode& source,
                                           const std::vector<workflow::Diagnostic>& found,
                                           SourceSpan body, SourceSpan span) {
    std::string message = "CodeNode '" + source.id + "': the body breaks a rule";
    std::string details;
    for (const workflow::Diagnostic& diagnostic : found) {
      if (diagnostic.severity != workflow::Severity::kError) continue;
      const std::uint32_t line = diagnostic.span.line;
      if (!details.empty()) details += '\n';
      if (line != 0) details += "line " + std::to_string(line) + " of the body: ";
      details += diagnostic.message;
      if (!diagnostic.hint.empty()) details += " (" + diagnostic.hint + ")";
      if (body.known() && line != 0 && !span.known()) span.line = body.line + line - 1;
    }
    return Fail(Status{errors::kGraphBody, std::move(message), span, std::move(details)});
  }

  Result<void> BuildSubgraph(const workflow::SubgraphNode& source, int depth, PlannedNode& node) {
    if (source.graph == nullptr) return BuildError("subgraph '" + source.id + "' has no graph");
    node.kind = PlannedNode::Kind::kSubgraph;
    node.type = kSubgraphType;
    node.blocks = true;
    GraphBuilder builder(*source.graph, table_, options_, node_count_, code_nodes_);
    CAISSON_ASSIGN(node.graph, builder.Build(depth + 1));
    return {};
  }

  // The index of a vertex; END is one, START is none.
  Result<NodeIndex> Target(const std::string& name, SourceSpan span) const {
    if (name == kEnd) return kEndIndex;
    const auto found = ranks_.find(name);
    if (found == ranks_.end()) {
      return BuildError("edge target '" + name + "' references an unknown node", span);
    }
    return found->second;
  }

  Result<void> BuildEdges() {
    bool leaves_start = false;
    for (std::size_t i = 0; i < source_.edges.size(); ++i) {
      const workflow::Edge& edge = source_.edges[i];
      const SourceSpan span = At(source_.spans.edges, i);
      if (edge.source == kEnd) return BuildError("END cannot be a start node", span);
      if (edge.target == kStart) return BuildError("START cannot be an end node", span);
      CAISSON_ASSIGN(const NodeIndex target, Target(edge.target, span));
      leaves_start = leaves_start || edge.source == kStart;
      CAISSON_TRY(AddEdge(edge.source, target, span));
    }
    if (leaves_start) return {};
    CAISSON_ASSIGN(const NodeIndex entry, Target(source_.entrypoint, {}));
    return AddEdge(std::string(kStart), entry, {});
  }

  Result<void> AddEdge(const std::string& source, NodeIndex target, SourceSpan span) {
    std::vector<NodeIndex>* targets = &planned_->first_step;
    if (source != kStart) {
      const auto found = ranks_.find(source);
      if (found == ranks_.end()) {
        return BuildError("edge source '" + source + "' references an unknown node", span);
      }
      targets = &planned_->nodes[found->second].targets;
    }
    if (target != kEndIndex) targets->push_back(target);
    return {};
  }

  Result<void> BuildBranches() {
    for (std::size_t i = 0; i < source_.conditional_edges.size(); ++i) {
      CAISSON_TRY(
          BuildBranch(source_.conditional_edges[i], At(source_.spans.conditional_edges, i)));
    }
    for (std::size_t i = 0; i < source_.conditional_edges.size(); ++i) {
      CAISSON_TRY(LinkBranch(source_.conditional_edges[i], At(source_.spans.conditional_edges, i)));
    }
    return {};
  }

  Result<void> BuildBranch(const workflow::ConditionalEdge& edge, SourceSpan span) {
    const std::string where = "conditional edge from '" + edge.source + "'";
    if (edge.path.empty()) return BuildError(where + " requires a path string", span);
    if (edge.mapping.empty()) return BuildError(where + " requires a non-empty mapping", span);
    const auto source = ranks_.find(edge.source);
    if (source == ranks_.end()) {
      return BuildError("conditional edge source '" + edge.source + "' references an unknown node",
                        span);
    }
    PlannedNode& node = planned_->nodes[source->second];
    if (node.branch != nullptr) {
      return BuildError("Branch with name `resolve` already exists for node `" + edge.source + "`",
                        span);
    }
    node.branch = std::make_unique<Branch>();
    return {};
  }

  Result<NodeIndex> BranchTarget(const std::string& source, const std::string& target,
                                 SourceSpan span) const {
    if (target == kEnd) return kEndIndex;
    if (const auto found = ranks_.find(target); found != ranks_.end()) return found->second;
    return BuildError(
        "At '" + source + "' node, 'resolve' branch found unknown target '" + target + "'", span);
  }

  Result<void> LinkBranch(const workflow::ConditionalEdge& edge, SourceSpan span) {
    auto branch = std::make_unique<Branch>();
    branch->path = edge.path;
    for (std::size_t begin = 0; begin <= edge.path.size();) {
      const std::size_t end = std::min(edge.path.find('.', begin), edge.path.size());
      branch->segments.emplace_back(edge.path.substr(begin, end - begin));
      begin = end + 1;
    }
    for (const auto& [key, target] : edge.mapping) {
      CAISSON_ASSIGN(const NodeIndex index, BranchTarget(edge.source, target, span));
      branch->mapping.insert_or_assign(key, index);
      branch->sorted_keys.push_back(key);
    }
    std::ranges::sort(branch->sorted_keys);
    // A blank default counts as none, as in the peer.
    if (edge.default_target && !edge.default_target->empty()) {
      CAISSON_ASSIGN(branch->default_target, BranchTarget(edge.source, *edge.default_target, span));
    }
    planned_->nodes[ranks_.at(edge.source)].branch = std::move(branch);
    return {};
  }

  const workflow::Graph& source_;
  const nodes::Table& table_;
  const PlanOptions& options_;
  std::size_t& node_count_;
  std::set<std::string, std::less<>>& code_nodes_;
  std::shared_ptr<PlannedGraph> planned_ = std::make_shared<PlannedGraph>();
  std::unordered_map<std::string, NodeIndex> ranks_;
};

}  // namespace

Result<NativePart> PlanNative(const nodes::NodeType& type, const json::Object& config,
                              Credentials credentials) {
  CAISSON_ASSIGN(json::Array values, nodes::ValidateConfig(type, config));
  const auto keeps_templates = [](nodes::FieldKind kind) {
    return kind == nodes::FieldKind::kTemplate || kind == nodes::FieldKind::kTemplateList;
  };
  NativePart part;
  part.type = &type;
  part.fields.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Template field = Template::Parse(values[i], credentials);
    if (type.fields[i].kind == nodes::FieldKind::kSteps) {
      part.steps = std::move(field);
      part.fields.emplace_back();
    } else if (type.fields[i].kind == nodes::FieldKind::kTools) {
      part.fields.emplace_back();
    } else if (keeps_templates(type.fields[i].kind)) {
      part.fields.push_back(Template::Static(values[i]));
    } else {
      part.fields.push_back(std::move(field));
    }
  }
  return part;
}

Result<Plan> Plan::Create(std::shared_ptr<const workflow::Graph> graph, const nodes::Table& table,
                          const PlanOptions& options) {
  CAISSON_TRY(RequireNative(*graph, table, options.host));
  Plan plan;
  GraphBuilder builder(*graph, table, options, plan.node_count_, plan.code_nodes_);
  CAISSON_ASSIGN(plan.root_, builder.Build(1));
  plan.source_ = std::move(graph);
  plan.table_ = &table;
  return plan;
}

}  // namespace caisson::graph
