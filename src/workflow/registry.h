// SPDX-License-Identifier: Apache-2.0
// The node types that a workflow may name, with their fields, and the models that it may refer to:
// tables generated from api/nodes.json and api/models.json. Facts about the types only; what runs
// them is in src/nodes. Everything here is constant data with static storage, safe for all threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

struct NodeField {
  std::string_view name;
  std::string_view type;  // as a Python annotation: "list[str] | None"
  bool required;
  std::string_view default_json;  // JSON text; empty when there is none or it is no plain value
  std::string_view constraints;   // comma separated: "ge=1,le=300"; empty when there are none
};

struct NodeType {
  std::string_view name;
  std::string_view category;
  std::string_view description;
  std::string_view base;
  bool restricted;                    // refused for untrusted authors
  std::span<const NodeField> fields;  // `name` (the node's id) is not among them

  const NodeField* FindField(std::string_view field) const;
};

// Sorted by name.
std::span<const NodeType> NodeTypes();
// nullptr when there is no such type.
const NodeType* FindNodeType(std::string_view name);

// The refusal of a restricted type, as the peer words it; empty when the type is allowed.
std::string NodePolicyRefusal(const NodeType& type, std::string_view node_id);
// The name among `candidates` that `name` was most likely meant to be; empty when none is near.
std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates);
// "did you mean 'SetVariableNode'?", or empty.
std::string NodeTypeHint(std::string_view unknown);

// Whether `text` holds what a run replaces by a value of the state.
bool HasTemplate(std::string_view text);
// What is wrong with `type`, which a step of a SubWorkflowNode names; empty when nothing is, or
// when a template gives the type. "" stands for a step without a type.
std::string StepTypeFault(std::string_view type);
std::string StepTypeHint(std::string_view type);

// Warnings on `config` of a node of that type: fields that it does not have, values of another type
// than the field's, values outside the field's constraints, required fields that are missing.
// Templates, placeholders and IR markers pass for any type.
struct ConfigSpans {
  struct Field {
    std::string_view name;
    SourceSpan name_span;
    SourceSpan value_span;
  };
  SourceSpan type;            // where the name of the node's type stands
  std::vector<Field> fields;  // of a name that comes twice, the last counts
};
void CheckConfig(const NodeType& type, const json::Object& config, const ConfigSpans& spans,
                 std::string_view node_id, std::vector<Diagnostic>& out);

// A model class of the peer's package that configs may refer to.
struct Model {
  std::string_view module;  // where the name was found: "orcheo.nodes.ai"
  std::string_view name;
  std::string_view schema_json;  // its JSON Schema without prose; empty when it has none
};

enum class ModelLookup : std::uint8_t {
  kModel,      // `model` is set
  kNotAModel,  // the module has that name, but it is no model class; or it lacks the name
  kNoSuchModule,
};
struct ModelResult {
  ModelLookup outcome;
  const Model* model = nullptr;
};
// What `from <module> import <name>` gives.
ModelResult FindModel(std::string_view module, std::string_view name);

}  // namespace caisson::workflow
