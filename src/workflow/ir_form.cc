// SPDX-License-Identifier: Apache-2.0
#include "workflow/ir_form.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "errors/ir.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

// A forged document may be wrong in every place; nobody reads on after this many.
constexpr std::size_t kMaxDiagnostics = 200;
// Far beyond what validation allows; keeps the recursion here small.
constexpr int kMaxFormDepth = 128;

std::string_view KindName(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kNull:
      return "null";
    case json::Value::Kind::kBool:
      return "a boolean";
    case json::Value::Kind::kInt:
    case json::Value::Kind::kBigInt:
      return "an integer";
    case json::Value::Kind::kDouble:
      return "a number with a fraction";
    case json::Value::Kind::kString:
      return "a string";
    case json::Value::Kind::kArray:
      return "an array";
    case json::Value::Kind::kObject:
      return "an object";
  }
  return "a value";
}

class Reporter {
 public:
  explicit Reporter(std::vector<Diagnostic>& out)
      : out_(out), limit_(out.size() + kMaxDiagnostics) {}

  void Error(ErrorCode code, const std::string& path, const std::string& message,
             std::string hint) {
    Refuse(code, path, "Malformed workflow IR: " + path + " " + message, std::move(hint));
  }
  void Refuse(ErrorCode code, const std::string& path, std::string message, std::string hint) {
    failed_ = true;
    if (out_.size() >= limit_) return;
    out_.push_back(
        {.code = code, .message = std::move(message), .hint = std::move(hint), .path = path});
  }
  bool failed() const { return failed_; }

 private:
  std::vector<Diagnostic>& out_;
  std::size_t limit_;
  bool failed_ = false;
};

// The fields of one object of the document, each taken at most once.
class Fields {
 public:
  Fields(const json::Object& object, const std::string& path, Reporter& report)
      : object_(object), path_(path), report_(report) {}

  void AllowOnly(std::initializer_list<std::string_view> names) {
    for (const auto& [key, value] : object_) {
      if (std::ranges::find(names, key) != names.end()) continue;
      const std::vector<std::string_view> candidates(names);
      const std::string_view nearest = Nearest(key, candidates);
      report_.Error(errors::kIrUnknownField, path_, "has the unknown field '" + Shorten(key) + "'",
                    nearest.empty() ? "remove it" : "did you mean '" + std::string(nearest) + "'?");
    }
  }

  std::string String(std::string_view name) {
    const json::Value* value = Take(name, true);
    if (value == nullptr) return {};
    if (value->is_string()) return value->as_string();
    WrongType(name, "a string", *value);
    return {};
  }
  std::optional<std::string> OptionalString(std::string_view name) {
    const json::Value* value = Take(name, false);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_string()) return value->as_string();
    WrongType(name, "a string or null", *value);
    return std::nullopt;
  }
  // nullptr when the field is absent (and not required) or of another type.
  const json::Object* Object(std::string_view name, bool required) {
    const json::Value* value = Take(name, required);
    if (value == nullptr) return nullptr;
    if (value->is_object()) return &value->as_object();
    WrongType(name, "an object", *value);
    return nullptr;
  }
  const json::Array* Array(std::string_view name) {
    const json::Value* value = Take(name, false);
    if (value == nullptr) return nullptr;
    if (value->is_array()) return &value->as_array();
    WrongType(name, "an array", *value);
    return nullptr;
  }
  const json::Value* Take(std::string_view name, bool required) {
    const json::Value* value = object_.Find(name);
    if (value == nullptr && required) {
      report_.Error(errors::kIrMalformed, path_, "lacks the field '" + std::string(name) + "'",
                    "add it, or compile the source again");
    }
    return value;
  }
  void WrongType(std::string_view name, std::string_view expected, const json::Value& value) {
    report_.Error(errors::kIrMalformed, PathOf(name),
                  "must be " + std::string(expected) + ", not " + std::string(KindName(value)),
                  "compile the source again");
  }
  std::string PathOf(std::string_view name) const { return path_ + "." + std::string(name); }

 private:
  static std::string Shorten(const std::string& key) {
    return key.size() <= 60 ? key : key.substr(0, 60) + "...";
  }

  const json::Object& object_;
  const std::string& path_;
  Reporter& report_;
};

class FormReader {
 public:
  explicit FormReader(Reporter& report) : report_(report) {}

  std::shared_ptr<const Graph> ReadGraph(const json::Value& document, const std::string& path,
                                         int depth) {
    const json::Object* object = AsObject(document, path);
    if (object == nullptr) return nullptr;
    if (depth > kMaxFormDepth) {
      report_.Error(errors::kIrTooDeep, path, "is nested too deeply",
                    "graphs may be nested 32 levels deep");
      return nullptr;
    }
    Fields fields(*object, path, report_);
    fields.AllowOnly(
        {"schema_version", "state_ref", "entrypoint", "nodes", "edges", "conditional_edges"});
    CheckVersion(fields, path);
    auto graph = std::make_shared<Graph>();
    if (auto state_ref = ReadStateRef(fields)) graph->state_ref = *std::move(state_ref);
    graph->entrypoint = fields.String("entrypoint");
    ReadNodes(fields, path, depth, *graph);
    ReadEdges(fields, path, *graph);
    ReadConditionalEdges(fields, path, *graph);
    return graph;
  }

 private:
  const json::Object* AsObject(const json::Value& value, const std::string& path) {
    if (value.is_object()) return &value.as_object();
    report_.Error(errors::kIrMalformed, path,
                  "must be an object, not " + std::string(KindName(value)),
                  "compile the source again");
    return nullptr;
  }

  void CheckVersion(Fields& fields, const std::string& path) {
    const json::Value* version = fields.Take("schema_version", false);
    if (version == nullptr) return;
    if (!version->is_integer()) return fields.WrongType("schema_version", "an integer", *version);
    if (version->is_int() && version->as_int() == kSchemaVersion) return;
    const std::string shown =
        version->is_int() ? std::to_string(version->as_int()) : version->as_bigint().substr(0, 40);
    report_.Refuse(errors::kIrSchemaVersion, path + ".schema_version",
                   "Unsupported " + (path == "$" ? std::string("IR") : path) + " schema_version " +
                       shown + "; supported versions: [" + std::to_string(kSchemaVersion) + "]",
                   "compile the source again with this version of Caisson");
  }

  static std::optional<std::string> ReadStateRef(Fields& fields) {
    const json::Value* state_ref = fields.Take("state_ref", false);
    if (state_ref == nullptr) return std::nullopt;
    if (state_ref->is_string()) return state_ref->as_string();
    fields.WrongType("state_ref", "a string", *state_ref);
    return std::nullopt;
  }

  void ReadNodes(Fields& fields, const std::string& path, int depth, Graph& graph) {
    const json::Array* nodes = fields.Array("nodes");
    if (nodes == nullptr) return;
    graph.nodes.reserve(nodes->size());
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      ReadNode((*nodes)[i], path + ".nodes[" + std::to_string(i) + "]", depth, graph);
    }
  }

  void ReadNode(const json::Value& value, const std::string& path, int depth, Graph& graph) {
    const json::Object* object = AsObject(value, path);
    if (object == nullptr) return;
    Fields fields(*object, path, report_);
    const std::string kind = fields.String("kind");
    if (kind == "builtin") {
      graph.nodes.emplace_back(ReadBuiltin(fields));
    } else if (kind == "code") {
      graph.nodes.emplace_back(ReadCode(fields, path));
    } else if (kind == "subgraph") {
      fields.AllowOnly({"kind", "id", "graph"});
      SubgraphNode node{fields.String("id"), nullptr};
      if (const json::Value* nested = fields.Take("graph", true)) {
        node.graph = ReadGraph(*nested, path + ".graph", depth + 1);
      }
      graph.nodes.emplace_back(std::move(node));
    } else if (object->Contains("kind")) {
      report_.Error(errors::kIrMalformed, path + ".kind", "must be 'builtin', 'code' or 'subgraph'",
                    "compile the source again");
    }
  }

  static BuiltinNode ReadBuiltin(Fields& fields) {
    fields.AllowOnly({"kind", "id", "type", "config"});
    BuiltinNode node{fields.String("id"), fields.String("type"), {}};
    if (const json::Object* config = fields.Object("config", false)) node.config = *config;
    return node;
  }

  CodeNode ReadCode(Fields& fields, const std::string& path) {
    fields.AllowOnly({"kind", "id", "config", "injected", "body"});
    CodeNode node{fields.String("id"), {}, {}, fields.String("body")};
    if (const json::Object* config = fields.Object("config", false)) node.config = *config;
    const json::Array* injected = fields.Array("injected");
    if (injected == nullptr) return node;
    node.injected.reserve(injected->size());
    for (std::size_t i = 0; i < injected->size(); ++i) {
      const json::Value& name = (*injected)[i];
      if (name.is_string()) {
        node.injected.push_back(name.as_string());
      } else {
        report_.Error(errors::kIrMalformed, path + ".injected[" + std::to_string(i) + "]",
                      "must be a string, not " + std::string(KindName(name)),
                      "compile the source again");
      }
    }
    return node;
  }

  void ReadEdges(Fields& fields, const std::string& path, Graph& graph) {
    const json::Array* edges = fields.Array("edges");
    if (edges == nullptr) return;
    graph.edges.reserve(edges->size());
    for (std::size_t i = 0; i < edges->size(); ++i) {
      const std::string here = path + ".edges[" + std::to_string(i) + "]";
      const json::Object* object = AsObject((*edges)[i], here);
      if (object == nullptr) continue;
      Fields edge(*object, here, report_);
      edge.AllowOnly({"source", "target"});
      graph.edges.push_back({edge.String("source"), edge.String("target")});
    }
  }

  void ReadConditionalEdges(Fields& fields, const std::string& path, Graph& graph) {
    const json::Array* edges = fields.Array("conditional_edges");
    if (edges == nullptr) return;
    graph.conditional_edges.reserve(edges->size());
    for (std::size_t i = 0; i < edges->size(); ++i) {
      const std::string here = path + ".conditional_edges[" + std::to_string(i) + "]";
      const json::Object* object = AsObject((*edges)[i], here);
      if (object == nullptr) continue;
      Fields edge(*object, here, report_);
      edge.AllowOnly({"source", "path", "mapping", "default"});
      ConditionalEdge read{edge.String("source"), edge.String("path"), {}, std::nullopt};
      ReadMapping(edge, here + ".mapping", read);
      read.default_target = edge.OptionalString("default");
      graph.conditional_edges.push_back(std::move(read));
    }
  }

  void ReadMapping(Fields& fields, const std::string& path, ConditionalEdge& edge) {
    const json::Object* mapping = fields.Object("mapping", true);
    if (mapping == nullptr) return;
    edge.mapping.reserve(mapping->size());
    for (const auto& [key, target] : *mapping) {
      if (target.is_string()) {
        edge.mapping.emplace_back(key, target.as_string());
      } else {
        report_.Error(errors::kIrMalformed, path,
                      "must map to strings, not to " + std::string(KindName(target)),
                      "compile the source again");
      }
    }
  }

  Reporter& report_;
};

}  // namespace

std::shared_ptr<const Graph> ReadGraphForm(const json::Value& document, const std::string& path,
                                           std::vector<Diagnostic>& out) {
  Reporter report(out);
  std::shared_ptr<const Graph> graph = FormReader(report).ReadGraph(document, path, 0);
  return report.failed() ? nullptr : graph;
}

void CheckToolForm(const json::Object& marker, const std::string& path,
                   std::vector<Diagnostic>& out) {
  Reporter report(out);
  Fields fields(marker, path, report);
  fields.AllowOnly(
      {kKindMarker, "name", "description", "graph", "output_path", "return_direct", "args_schema"});
  fields.String("name");
  fields.String("description");
  fields.Object("graph", true);
  fields.OptionalString("output_path");
  const json::Value* return_direct = fields.Take("return_direct", false);
  if (return_direct != nullptr && !return_direct->is_bool()) {
    fields.WrongType("return_direct", "a boolean", *return_direct);
  }
}

}  // namespace caisson::workflow
