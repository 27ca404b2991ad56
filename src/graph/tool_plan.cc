// SPDX-License-Identifier: Apache-2.0
#include "graph/tool_plan.h"

#include <algorithm>
#include <utility>

#include "errors/nodes.h"
#include "json/reader.h"
#include "nodes/python_text.h"
#include "workflow/ir_form.h"

namespace caisson::graph {
namespace {

std::unexpected<Status> Wrong(const std::string& where, const std::string& what) {
  return Fail(errors::kNodesConfig, where + ": " + what);
}

// What the peer's library makes of a tool without a schema.
const json::Value& BareSchema() {
  static const json::Value schema = json::Object{
      {"properties", json::Object{{"kwargs", json::Object{{"additionalProperties", true},
                                                          {"default", nullptr},
                                                          {"type", "object"}}}}},
      {"type", "object"}};
  return schema;
}

Result<std::string> Text(const json::Value& marker, std::string_view member,
                         const std::string& where) {
  const json::Value* value = marker.Find(member);
  if (value != nullptr && value->is_string()) return value->as_string();
  return Wrong(where + "." + std::string(member), "must be a string");
}

Result<void> ReadOutputPath(const json::Value& marker, const std::string& where,
                            PlannedTool& tool) {
  const json::Value* path = marker.Find("output_path");
  if (path == nullptr || path->is_null()) return {};
  CAISSON_ASSIGN(const std::string text, Text(marker, "output_path", where));
  tool.output_path = nodes::Strip(text);
  if (tool.output_path.empty()) return Wrong(where, "output_path must not be empty");
  for (std::size_t begin = 0; begin <= tool.output_path.size();) {
    const std::size_t end = std::min(tool.output_path.find('.', begin), tool.output_path.size());
    tool.segments.push_back(tool.output_path.substr(begin, end - begin));
    begin = end + 1;
  }
  return {};
}

Result<json::Schema> ReadSchema(const json::Value& marker, const std::string& where,
                                json::Value& parameters) {
  const json::Value* given = marker.Find("args_schema");
  const bool is_bare = given == nullptr || given->is_null();
  if (!is_bare && !given->is_object()) {
    return Wrong(where + ".args_schema", "must be a JSON Schema object or a schema class");
  }
  parameters = is_bare ? BareSchema() : *given;
  auto schema = json::Schema::Compile(parameters);
  if (schema) return *std::move(schema);
  return Wrong(where + ".args_schema", schema.error().message);
}

Result<std::shared_ptr<const workflow::Graph>> ReadGraph(const json::Value& marker,
                                                         const std::string& where) {
  const json::Value* document = marker.Find("graph");
  if (document == nullptr) return Wrong(where, "needs a graph");
  std::vector<workflow::Diagnostic> found;
  auto graph = workflow::ReadGraphForm(*document, where + ".graph", found);
  if (graph != nullptr) return graph;
  return Wrong(where + ".graph",
               found.empty() ? std::string("is not a graph") : found.front().message);
}

}  // namespace

Result<std::shared_ptr<const Toolbox>> PlanTools(const json::Array& markers,
                                                 const PlanGraph& plan) {
  auto box = std::make_shared<Toolbox>();
  for (std::size_t i = 0; i < markers.size(); ++i) {
    const json::Value& marker = markers[i];
    const std::string where = "$.config.workflow_tools[" + std::to_string(i) + "]";
    nodes::ToolInfo info;
    CAISSON_ASSIGN(info.name, Text(marker, "name", where));
    CAISSON_ASSIGN(info.description, Text(marker, "description", where));
    const json::Value* direct = marker.Find("return_direct");
    info.return_direct = direct != nullptr && *direct == json::Value(true);
    CAISSON_ASSIGN(json::Schema schema, ReadSchema(marker, where, info.parameters));
    PlannedTool tool{std::move(schema), info.parameters == BareSchema(), nullptr, {}, {}};
    CAISSON_TRY(ReadOutputPath(marker, where, tool));
    CAISSON_ASSIGN(const auto graph, ReadGraph(marker, where));
    CAISSON_ASSIGN(tool.graph, plan(*graph));
    box->infos.push_back(std::move(info));
    box->tools.push_back(std::move(tool));
  }
  return std::shared_ptr<const Toolbox>(std::move(box));
}

std::string ToolPath(std::string_view graph_path, std::string_view node_id, std::string_view tool) {
  std::string path(graph_path);
  if (!path.empty()) path += '/';
  return path.append(node_id).append(":").append(tool);
}

}  // namespace caisson::graph
