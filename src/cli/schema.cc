// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/source.h"

namespace caisson::cli {
namespace {

// The schemas that an IR holds: those of the tools in the configurations of its nodes.
class SchemaCollector {
 public:
  json::Object Collect(const workflow::Graph& graph) {
    Visit(graph, "");
    return std::move(found_);
  }

 private:
  void Visit(const workflow::Graph& graph, const std::string& prefix) {
    for (const workflow::Node& node : graph.nodes) {
      if (const auto* builtin = std::get_if<workflow::BuiltinNode>(&node)) {
        VisitConfig(builtin->config, prefix + builtin->id);
      } else if (const auto* subgraph = std::get_if<workflow::SubgraphNode>(&node)) {
        Visit(*subgraph->graph, prefix + subgraph->id + "/");
      }
    }
  }

  void VisitConfig(const json::Object& config, const std::string& place) {
    if (const json::Value* format = config.Find("response_format");
        format != nullptr && format->is_object()) {
      found_.Set(place + ".response_format", *format);
    }
    const json::Value* tools = config.Find("workflow_tools");
    if (tools == nullptr || !tools->is_array()) return;
    for (const json::Value& tool : tools->as_array()) {
      const json::Value* name = tool.Find("name");
      const json::Value* schema = tool.Find("args_schema");
      if (name == nullptr || !name->is_string() || schema == nullptr) continue;
      found_.Set(place + ".workflow_tools." + name->as_string(), *schema);
    }
  }

  json::Object found_;
};

}  // namespace

ExitCode PrintSchemas(const SchemaArguments& arguments, Console& console) {
  auto source = OpenSource(arguments.source, console);
  if (!source) return source.error();
  json::Object schemas;
  if (source->is_ir) {
    schemas = SchemaCollector().Collect(*source->graph);
  } else {
    for (auto& [place, schema] : source->schemas) schemas.Set(place, std::move(schema));
  }
  return PrintJson(schemas, console);
}

}  // namespace caisson::cli
