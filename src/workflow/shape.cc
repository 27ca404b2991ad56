// SPDX-License-Identifier: Apache-2.0
#include "workflow/shape.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "errors/workflow.h"
#include "workflow/report.h"

namespace caisson::workflow {
namespace {

constexpr std::uint32_t kNoRoot = UINT32_MAX;

class Shape {
 public:
  Shape(const Graph& graph, std::vector<Diagnostic>& out) : graph_(graph), out_(out) {
    ids_.reserve(graph.nodes.size());
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i)
      ids_.try_emplace(NodeId(graph.nodes[i]), i);
    direct_.resize(graph.nodes.size());
    branches_.resize(graph.nodes.size());
    branch_target_.resize(graph.nodes.size());
    entry_.resize(graph.nodes.size());
    Connect();
  }

  void Warn() {
    WarnOfIds();
    WarnOfSecondBranches();
    WarnOfUnreachable();
    WarnOfUnevenJoins();
  }

 private:
  // The node of that id, or nothing for sentinels and ids that do not exist.
  const std::uint32_t* Find(std::string_view id) const {
    const auto found = ids_.find(id);
    return found == ids_.end() ? nullptr : &found->second;
  }

  void Connect() {
    bool start_has_edge = false;
    for (const Edge& edge : graph_.edges) {
      const std::uint32_t* target = Find(edge.target);
      if (edge.source == kStart) start_has_edge = true;
      if (target == nullptr) continue;
      if (edge.source == kStart) {
        entry_[*target] = true;
      } else if (const std::uint32_t* source = Find(edge.source)) {
        direct_[*source].push_back(*target);
      }
    }
    if (const std::uint32_t* entry = Find(graph_.entrypoint); entry && !start_has_edge) {
      entry_[*entry] = true;
    }
    for (const ConditionalEdge& edge : graph_.conditional_edges) {
      const std::uint32_t* source = Find(edge.source);
      if (source == nullptr) continue;
      for (const auto& [key, target] : edge.mapping) Branch(*source, target);
      if (edge.default_target) Branch(*source, *edge.default_target);
    }
  }

  void Branch(std::uint32_t source, std::string_view target_id) {
    const std::uint32_t* target = Find(target_id);
    if (target == nullptr) return;
    branches_[source].push_back(*target);
    branch_target_[*target] = true;
  }

  SourceSpan IdSpan(std::uint32_t node) const {
    return node < graph_.spans.ids.size() ? graph_.spans.ids[node] : SourceSpan{};
  }
  const std::string& Id(std::uint32_t node) const { return NodeId(graph_.nodes[node]); }

  void WarnOfIds() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::size_t place = Id(i).find_first_of(":|");
      if (place == std::string::npos) continue;
      AddWarning(out_, errors::kWorkflowReservedIdCharacter, IdSpan(i),
                 fmt::format("'{}' is reserved and may not stand in the node id '{}'; such a "
                             "workflow cannot be built",
                             Id(i)[place], Id(i)),
                 "use letters, digits, '_' and '-'");
    }
  }

  void WarnOfSecondBranches() {
    std::unordered_map<std::string_view, SourceSpan> seen;
    for (std::size_t i = 0; i < graph_.conditional_edges.size(); ++i) {
      const std::string& source = graph_.conditional_edges[i].source;
      const SourceSpan span = i < graph_.spans.conditional_names.size()
                                  ? graph_.spans.conditional_names[i].source
                                  : SourceSpan{};
      const auto [first, is_new] = seen.try_emplace(source, span);
      if (is_new) continue;
      AddWarning(out_, errors::kWorkflowSecondConditionalEdge, span,
                 fmt::format("node '{}' already has a conditional edge; such a workflow cannot be "
                             "built",
                             source),
                 fmt::format("extend the mapping of the first one (line {}), or route in two steps",
                             first->second.line));
    }
  }

  void WarnOfUnreachable() {
    std::vector<bool> reached = entry_;
    std::vector<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < reached.size(); ++i) {
      if (reached[i]) queue.push_back(i);
    }
    while (!queue.empty()) {
      const std::uint32_t node = queue.back();
      queue.pop_back();
      for (const auto* targets : {&direct_[node], &branches_[node]}) {
        for (const std::uint32_t target : *targets) {
          if (reached[target]) continue;
          reached[target] = true;
          queue.push_back(target);
        }
      }
    }
    for (std::uint32_t i = 0; i < reached.size(); ++i) {
      if (reached[i]) continue;
      AddWarning(out_, errors::kWorkflowUnreachableNode, IdSpan(i),
                 fmt::format("no path leads to node '{}', so it never runs", Id(i)),
                 "add an edge that leads to it, or remove it");
    }
  }

  // A node runs one step after each of its sources. Its place is a root (the step in which START's
  // nodes run, or in which some node runs whose step is not known, such as the target of a branch)
  // and the distance from there. Sources with one root and two distances make it run twice.
  struct Place {
    std::uint32_t root = kNoRoot;
    std::uint32_t distance = 0;
    std::uint32_t source = kNoRoot;
  };

  void WarnOfUnevenJoins() {
    const std::uint32_t count = static_cast<std::uint32_t>(direct_.size());
    std::vector<std::uint32_t> waiting(count);
    for (const auto& targets : direct_) {
      for (const std::uint32_t target : targets) ++waiting[target];
    }
    std::vector<Place> places(count);
    std::vector<bool> mixed(count);   // its sources have different roots
    std::vector<bool> uneven(count);  // one root, two distances
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (entry_[i]) places[i] = {.root = count, .distance = 1, .source = kNoRoot};
      if (waiting[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      if (branch_target_[node] || mixed[node] || uneven[node] || places[node].root == kNoRoot) {
        places[node] = {.root = node, .distance = 0, .source = kNoRoot};
      }
      const Place next{places[node].root, places[node].distance + 1, node};
      for (const std::uint32_t target : direct_[node]) {
        Meet(target, next, places[target], mixed, uneven);
        if (--waiting[target] == 0) ready.push_back(target);
      }
    }
  }

  void Meet(std::uint32_t node, const Place& next, Place& place, std::vector<bool>& mixed,
            std::vector<bool>& uneven) {
    if (place.root == kNoRoot) {
      place = next;
    } else if (place.root != next.root) {
      mixed[node] = true;
    } else if (place.distance != next.distance && !uneven[node]) {
      uneven[node] = true;
      ReportUneven(node, place, next);
    }
  }

  void ReportUneven(std::uint32_t node, const Place& one, const Place& other) {
    if (one.source != kNoRoot && other.source != kNoRoot && one.source > other.source) {
      return ReportUneven(node, other, one);
    }
    const auto name = [this](const Place& place) {
      return place.source == kNoRoot ? std::string("START") : fmt::format("'{}'", Id(place.source));
    };
    AddWarning(out_, errors::kWorkflowUnevenJoin, IdSpan(node),
               fmt::format("node '{}' runs more than once: the branches that meet in it, by {} and "
                           "by {}, have different lengths",
                           Id(node), name(one), name(other)),
               "make the branches equally long, for example with a NoOpTaskNode");
  }

  const Graph& graph_;
  std::vector<Diagnostic>& out_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::vector<std::vector<std::uint32_t>> direct_;
  std::vector<std::vector<std::uint32_t>> branches_;
  std::vector<bool> branch_target_;
  std::vector<bool> entry_;
};

}  // namespace

void WarnOfShape(const Graph& graph, std::vector<Diagnostic>& out) { Shape(graph, out).Warn(); }

}  // namespace caisson::workflow
