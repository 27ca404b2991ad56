// SPDX-License-Identifier: Apache-2.0
#include "cli/drawing.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/foreign_text.h"

namespace caisson::cli {
namespace {

using workflow::Graph;
using workflow::Node;

constexpr std::size_t kShownLabel = 200;  // bytes

enum class Shape { kBuiltin, kCode, kStart, kEnd };

// The language of a drawing. Names are made here (n0, n1_2): they need no escaping.
class Pen {
 public:
  virtual ~Pen() = default;
  virtual void Begin() = 0;
  virtual void Node(int depth, const std::string& name, Shape shape, std::string_view id,
                    std::string_view type) = 0;
  virtual void BeginGroup(int depth, const std::string& name, std::string_view id) = 0;
  virtual void EndGroup(int depth) = 0;
  virtual void Edge(int depth, const std::string& from, const std::string& to,
                    std::string_view label, bool conditional) = 0;
  virtual std::string End() = 0;

 protected:
  void Line(int depth, const std::string& text) {
    text_.append(2 * static_cast<std::size_t>(depth), ' ').append(text).append("\n");
  }
  std::string text_;
};

class MermaidPen final : public Pen {
 public:
  void Begin() override { text_ = "flowchart TD\n"; }
  void Node(int depth, const std::string& name, Shape shape, std::string_view id,
            std::string_view type) override {
    switch (shape) {
      case Shape::kStart:
        return Line(depth, name + "([START])");
      case Shape::kEnd:
        return Line(depth, name + "([END])");
      case Shape::kCode:
        return Line(depth, name + "[[\"" + Escape(id) + "<br/>code\"]]");
      case Shape::kBuiltin:
        break;
    }
    Line(depth, name + "[\"" + Escape(id) + "<br/>" + Escape(type) + "\"]");
  }
  void BeginGroup(int depth, const std::string& name, std::string_view id) override {
    Line(depth, "subgraph " + name + "[\"" + Escape(id) + "\"]");
  }
  void EndGroup(int depth) override { Line(depth, "end"); }
  void Edge(int depth, const std::string& from, const std::string& to, std::string_view label,
            bool conditional) override {
    std::string arrow = conditional ? " -.->" : " -->";
    if (!label.empty()) arrow += "|\"" + Escape(label) + "\"|";
    Line(depth, from + arrow + " " + to);
  }
  std::string End() override { return std::move(text_); }

 private:
  // Mermaid knows entity codes between # and ;. Besides quotes it looks into labels for HTML,
  // Markdown (in backquotes), formulas ($$), icons (fa:fa-x) and directives (%%{...}%%).
  static std::string Escape(std::string_view text) {
    std::string out;
    for (const char c : ShowForeignLine(text, kShownLabel)) {
      if (std::string_view("\"#<>&;:%$`|{}[]()\\").find(c) != std::string_view::npos) {
        out += "#" + std::to_string(static_cast<int>(c)) + ";";
      } else {
        out += c;
      }
    }
    return out;
  }
};

class DotPen final : public Pen {
 public:
  void Begin() override { text_ = "digraph workflow {\n  node [shape=box];\n"; }
  void Node(int depth, const std::string& name, Shape shape, std::string_view id,
            std::string_view type) override {
    switch (shape) {
      case Shape::kStart:
        return Line(depth, name + " [label=\"START\", shape=oval];");
      case Shape::kEnd:
        return Line(depth, name + " [label=\"END\", shape=oval];");
      case Shape::kCode:
        return Line(depth, name + " [label=\"" + Escape(id) + "\\ncode\", peripheries=2];");
      case Shape::kBuiltin:
        break;
    }
    Line(depth, name + " [label=\"" + Escape(id) + "\\n" + Escape(type) + "\"];");
  }
  void BeginGroup(int depth, const std::string& name, std::string_view id) override {
    Line(depth, "subgraph cluster_" + name + " {");
    Line(depth + 1, "label=\"" + Escape(id) + "\";");
  }
  void EndGroup(int depth) override { Line(depth, "}"); }
  void Edge(int depth, const std::string& from, const std::string& to, std::string_view label,
            bool conditional) override {
    std::string attributes = conditional ? "style=dashed" : "";
    if (!label.empty()) {
      attributes += (attributes.empty() ? "" : ", ") + ("label=\"" + Escape(label) + "\"");
    }
    Line(depth, from + " -> " + to + (attributes.empty() ? "" : " [" + attributes + "]") + ";");
  }
  std::string End() override { return std::move(text_) + "}\n"; }

 private:
  static std::string Escape(std::string_view text) {
    std::string out;
    for (const char c : ShowForeignLine(text, kShownLabel)) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
      if (c == '&') out += "amp;";  // labels know HTML's entities
    }
    return out;
  }
};

class Artist {
 public:
  explicit Artist(Pen& pen) : pen_(pen) {}

  void Draw(const Graph& graph) {
    pen_.Begin();
    DrawGraph(graph, "n", 1);
  }

 private:
  // Subgraphs are drawn as groups with a START and END of their own; an edge to a subgraph leads to
  // its START, one from it leaves its END.
  struct Ends {
    std::string in;
    std::string out;
  };

  void DrawGraph(const Graph& graph, const std::string& prefix, int depth) {
    std::map<std::string, Ends, std::less<>> ends;
    const std::string start = prefix + "s";
    const std::string end = prefix + "e";
    ends[std::string(workflow::kStart)] = {start, start};
    ends[std::string(workflow::kEnd)] = {end, end};
    pen_.Node(depth, start, Shape::kStart, "", "");
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      ends[workflow::NodeId(graph.nodes[i])] =
          DrawNode(graph.nodes[i], prefix + std::to_string(i), depth);
    }
    pen_.Node(depth, end, Shape::kEnd, "", "");
    DrawEdges(graph, ends, depth);
  }

  Ends DrawNode(const Node& node, const std::string& name, int depth) {
    if (const auto* subgraph = std::get_if<workflow::SubgraphNode>(&node)) {
      pen_.BeginGroup(depth, name, subgraph->id);
      DrawGraph(*subgraph->graph, name + "_", depth + 1);
      pen_.EndGroup(depth);
      return {name + "_s", name + "_e"};
    }
    if (const auto* builtin = std::get_if<workflow::BuiltinNode>(&node)) {
      pen_.Node(depth, name, Shape::kBuiltin, builtin->id, builtin->type);
    } else {
      pen_.Node(depth, name, Shape::kCode, workflow::NodeId(node), "code");
    }
    return {name, name};
  }

  template <typename Map>
  void DrawEdges(const Graph& graph, const Map& ends, int depth) {
    std::set<std::string_view> sources;
    for (const workflow::Edge& edge : graph.edges) {
      sources.insert(edge.source);
      Connect(ends, edge.source, edge.target, "", false, depth);
    }
    if (!sources.contains(workflow::kStart))
      Connect(ends, std::string(workflow::kStart), graph.entrypoint, "", false, depth);
    for (const workflow::ConditionalEdge& edge : graph.conditional_edges) {
      sources.insert(edge.source);
      for (const auto& [key, target] : edge.mapping) {
        Connect(ends, edge.source, target, edge.path + " = " + key, true, depth);
      }
      if (edge.default_target) {
        Connect(ends, edge.source, *edge.default_target, "else", true, depth);
      }
    }
    for (const Node& node : graph.nodes) {  // what nothing follows ends the graph
      const std::string& id = workflow::NodeId(node);
      if (!sources.contains(id)) Connect(ends, id, std::string(workflow::kEnd), "", false, depth);
    }
  }

  template <typename Map>
  void Connect(const Map& ends, const std::string& from, const std::string& to,
               std::string_view label, bool conditional, int depth) {
    const auto source = ends.find(from);
    const auto target = ends.find(to);
    if (source == ends.end() || target == ends.end()) return;
    pen_.Edge(depth, source->second.out, target->second.in, label, conditional);
  }

  Pen& pen_;
};

}  // namespace

std::string DrawMermaid(const Graph& graph) {
  MermaidPen pen;
  Artist(pen).Draw(graph);
  return pen.End();
}

std::string DrawDot(const Graph& graph) {
  DotPen pen;
  Artist(pen).Draw(graph);
  return pen.End();
}

}  // namespace caisson::cli
