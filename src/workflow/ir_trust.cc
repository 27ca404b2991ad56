// SPDX-License-Identifier: Apache-2.0
#include "workflow/ir_trust.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "errors/config.h"
#include "errors/ir.h"
#include "errors/policy.h"
#include "workflow/body.h"
#include "workflow/ir_form.h"
#include "workflow/literal.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

bool IsIdentifier(std::string_view name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::ranges::all_of(name, is_part);
}

// Where a value stands in the document; written out only when a message needs it.
struct Place {
  const Place* outer;
  std::string_view key;  // a step of its own text ("nodes"), or empty: `index`
  std::size_t index;

  std::string Path() const {
    if (outer == nullptr) return std::string(key);
    std::string path = outer->Path();
    return path +=
           key.data() != nullptr ? "." + std::string(key) : "[" + std::to_string(index) + "]";
  }
};

class TrustChecker {
 public:
  TrustChecker(const CompileOptions& options, std::vector<Diagnostic>& out)
      : options_(options), out_(out) {}

  void CheckGraph(const Graph& graph, const Place& here, int depth) {
    if (depth > kMaxGraphDepth) return;  // reported by ValidateGraph
    const Place nodes{&here, "nodes", 0};
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Place place{&nodes, {}, i};
      if (const auto* builtin = std::get_if<BuiltinNode>(&graph.nodes[i])) {
        CheckBuiltin(*builtin, place, depth);
      } else if (const auto* code = std::get_if<CodeNode>(&graph.nodes[i])) {
        CheckCode(*code, place);
      } else if (const auto* nested = std::get_if<SubgraphNode>(&graph.nodes[i])) {
        CheckGraph(*nested->graph, {&place, "graph", 0}, depth + 1);
      }
    }
  }

 private:
  void Report(ErrorCode code, const Place& place, std::string message, std::string hint) {
    out_.push_back({.code = code,
                    .message = std::move(message),
                    .hint = std::move(hint),
                    .path = place.Path()});
  }

  void CheckBuiltin(const BuiltinNode& node, const Place& here, int depth) {
    const Place place{&here, "config", 0};
    CheckPolicy(node.type, node.id, {&here, "type", 0});
    if (node.type == "SubWorkflowNode") CheckSteps(node.config, node.id, place);
    for (const auto& [key, value] : node.config) {
      CheckKey(key, place);
      CheckConfig(value, {&place, key, 0}, depth);
    }
  }

  void CheckPolicy(std::string_view name, std::string_view id, const Place& place) {
    if (!options_.enforce_node_policy) return;
    const NodeType* type = FindNodeType(name);
    if (type == nullptr || !type->restricted) return;
    Report(errors::kPolicyNodeRestricted, place, NodePolicyRefusal(*type, id),
           "use a node that needs no host access");
  }

  // The steps of a SubWorkflowNode are nodes; one of them may be a SubWorkflowNode again.
  void CheckSteps(const json::Object& config, std::string_view id, const Place& here) {
    const json::Value* steps = config.Find("steps");
    if (steps == nullptr || !steps->is_array()) return;
    const Place list{&here, "steps", 0};
    for (std::size_t i = 0; i < steps->as_array().size(); ++i) {
      const json::Value& step = steps->as_array()[i];
      if (!step.is_object()) continue;
      const Place place{&list, {}, i};
      const json::Value* type = step.Find("type");
      const bool named = type != nullptr && type->is_string();
      CheckStepType(named ? std::string_view(type->as_string()) : "", id,
                    named ? Place{&place, "type", 0} : place);
      CheckSteps(step.as_object(), id, place);
    }
  }

  void CheckStepType(std::string_view type, std::string_view id, const Place& place) {
    if (const std::string fault = StepTypeFault(type); !fault.empty()) {
      Report(errors::kConfigUnknownStepType, place,
             "node '" + std::string(id) + "': " + fault + "; such a workflow cannot be run",
             StepTypeHint(type));
      out_.back().severity = Severity::kWarning;
    }
    CheckPolicy(type, id, place);
  }

  void CheckKey(const std::string& key, const Place& place) {
    if (!key.starts_with(kKindMarker)) return;
    Report(errors::kIrReservedKey, place,
           "keys that begin with '" + std::string(kKindMarker) + "' are reserved",
           "rename the key");
  }

  // Config of a built-in node: plain JSON, tool markers, model markers.
  void CheckConfig(const json::Value& value, const Place& here, int depth) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        CheckConfig(value.as_array()[i], {&here, {}, i}, depth);
      }
    } else if (value.is_object()) {
      const json::Value* kind = value.Find(kKindMarker);
      if (kind != nullptr) return CheckMarker(value.as_object(), *kind, here, depth);
      for (const auto& [key, member] : value.as_object()) {
        CheckKey(key, here);
        CheckConfig(member, {&here, key, 0}, depth);
      }
    }
  }

  void CheckMarker(const json::Object& marker, const json::Value& kind, const Place& here,
                   int depth) {
    if (kind.is_string() && kind.as_string() == "workflow_tool") {
      CheckTool(marker, here, depth);
    } else if (kind.is_string() && kind.as_string() == "pydantic_model") {
      CheckModel(marker, here);
    } else {
      Report(errors::kIrReservedKey, here,
             "'" + std::string(kKindMarker) + "' must be 'workflow_tool' or 'pydantic_model'",
             "compile the source again");
    }
  }

  void CheckTool(const json::Object& marker, const Place& here, int depth) {
    CheckToolForm(marker, here.Path(), out_);
    if (const json::Value* schema = marker.Find("args_schema")) {
      CheckPlain(*schema, {&here, "args_schema", 0});
    }
    const json::Value* document = marker.Find("graph");
    if (document == nullptr || !document->is_object() || depth >= kMaxGraphDepth) return;
    // ValidateGraph reports the graph's form.
    std::vector<Diagnostic> ignored;
    const std::shared_ptr<const Graph> graph = ReadGraphForm(*document, "$", ignored);
    if (graph != nullptr) CheckGraph(*graph, {&here, "graph", 0}, depth + 1);
  }

  void CheckModel(const json::Object& marker, const Place& here) {
    const json::Value* module = marker.Find("module");
    const json::Value* name = marker.Find("name");
    const bool has_form = marker.size() == 3 && module != nullptr && module->is_string() &&
                          name != nullptr && name->is_string();
    if (has_form &&
        FindModel(module->as_string(), name->as_string()).outcome == ModelLookup::kModel) {
      return;
    }
    Report(errors::kIrModel, here,
           has_form ? "'" + module->as_string() + "." + name->as_string() +
                          "' is no model class that workflows may refer to"
                    : "a model reference has exactly a module and a name, both strings",
           "import the model from an orcheo module and compile the source again");
  }

  // JSON without markers, as in schemas and in the config of code nodes.
  void CheckPlain(const json::Value& value, const Place& here) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        CheckPlain(value.as_array()[i], {&here, {}, i});
      }
    } else if (value.is_object()) {
      for (const auto& [key, member] : value.as_object()) {
        CheckKey(key, here);
        CheckPlain(member, {&here, key, 0});
      }
    }
  }

  void CheckCode(const CodeNode& node, const Place& here) {
    const Place config{&here, "config", 0};
    for (const auto& [key, value] : node.config) {
      CheckKey(key, config);
      CheckPlain(value, {&config, key, 0});
      CheckCredentials(value, {&config, key, 0});
    }
    CheckInjected(node, {&here, "injected", 0});
    auto body = PrepareBody(node, options_);
    if (body) return;
    const Place place{&here, "body", 0};
    for (Diagnostic& each : body.error()) {
      each.path = place.Path();
      // The place is one within the body, not of the document.
      if (each.span.known()) {
        each.path += ", line " + std::to_string(each.span.line) + ", column " +
                     std::to_string(each.span.column + 1);
      }
      each.span = {};
      each.peer_line = 0;
      out_.push_back(std::move(each));
    }
  }

  void CheckCredentials(const json::Value& value, const Place& here) {
    if (value.is_string()) {
      CheckCredential(value.as_string(), here);
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        CheckCredentials(value.as_array()[i], {&here, {}, i});
      }
    } else if (value.is_object()) {
      for (const auto& [key, member] : value.as_object()) {
        CheckCredential(key, here);
        CheckCredentials(member, {&here, key, 0});
      }
    }
  }

  void CheckCredential(std::string_view text, const Place& here) {
    if (!HasCredential(text, true)) return;
    Report(errors::kIrCredentialInCode, here,
           "'[[credential]]' placeholders are not allowed in CodeNode config",
           "use the credential in a built-in node and pass its result on");
  }

  void CheckInjected(const CodeNode& node, const Place& here) {
    const auto report = [&](std::string message) {
      Report(errors::kIrInjected, here, "CodeNode '" + node.id + "': " + std::move(message),
             "compile the source again");
    };
    for (const std::string& name : node.injected) {
      if (!IsIdentifier(name)) return report("an injected field must be a name");
    }
    if (std::ranges::adjacent_find(node.injected, std::ranges::greater_equal()) !=
        node.injected.end()) {
      return report("injected fields must be sorted and unique");
    }
    for (const auto& [key, value] : node.config) {
      if (!std::ranges::binary_search(node.injected, key)) {
        return report("config sets '" + key + "', which is not injected");
      }
    }
  }

  const CompileOptions& options_;
  std::vector<Diagnostic>& out_;
};

}  // namespace

void CheckTrust(const Graph& graph, const CompileOptions& options, std::vector<Diagnostic>& out) {
  TrustChecker(options, out).CheckGraph(graph, {nullptr, "$", 0}, 0);
}

}  // namespace caisson::workflow
