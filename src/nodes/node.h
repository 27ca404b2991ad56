// SPDX-License-Identifier: Apache-2.0
// What a built-in node is: a row of a table with the fields of its configuration and a function
// that runs it. Nodes hold no state of their own, know nothing of graphs, and run on any thread;
// what they need from the engine (sleeping, logging, running another node) they ask of their Host.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/outbound.h"
#include "json/value.h"
#include "nodes/state.h"

namespace caisson::nodes {

class Blobs;
class Items;

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

// What a step stored in node_results under its own name.
struct StepResult {
  std::string name;
  json::Value payload;
};

// A tool of an agent, as its model is told of it.
struct ToolInfo {
  std::string name;
  std::string description;
  json::Value parameters;  // a JSON Schema
  bool return_direct = false;
};
struct ToolRun {
  std::size_t tool = 0;  // index into Host::Tools()
  std::string call_id;
  json::Object arguments;
};
struct ToolOutcome {
  json::Value output;
  std::string misfit;  // why the arguments do not fit the tool's schema; then nothing ran
};

// What is shown while it happens and not kept.
enum class DeltaKind : std::uint8_t {
  kMessage,       // a piece of an answer: {"content"}, {"refusal"} or {"tool_call"}
  kToolProgress,  // {"tool", "call_id", "status": "started", "node_finished" or "finished", ...}
};

// The engine as a running node sees it. Every member may be called from the node's thread.
class Host {
 public:
  virtual ~Host() = default;
  // Returns after `duration`, or early with graph.cancelled or graph.timed_out.
  virtual Result<void> Sleep(std::chrono::nanoseconds duration) = 0;
  virtual void Log(LogLevel level, std::string_view message) = 0;
  // Asks whoever started the run and gives the answer. When there is none yet, fails with
  // graph.interrupted, which the node hands on: the run ends there, and the visit begins anew once
  // there is an answer; the n-th call of a visit gets the n-th answer. Fails with graph.no_journal
  // in a run that cannot be resumed.
  virtual Result<json::Value> Ask(json::Value question) = 0;
  // What the visit may send into the world; every transfer ends, at the latest, with the visit, and
  // then fails as Sleep does. Lives as long as the visit. Fails with outbound.no_network when the
  // run has none.
  virtual Result<http::Outbound*> Network() = 0;
  // The run's stores. Fail with nodes.no_blobs, nodes.no_items when the run has none.
  virtual Result<Blobs*> BlobStore() = 0;
  virtual Result<Items*> ItemStore() = 0;
  // For a node with a field of kind kSteps: how many steps that field has, and running one of them
  // on `state`. Templates of a step that the visit's own state answers are answered from it, the
  // others from `state`.
  virtual std::size_t StepCount() const = 0;
  virtual Result<StepResult> RunStep(std::size_t index, const State& state) = 0;
  // For a node with a field of kind kTools.
  virtual std::span<const ToolInfo> Tools() const = 0;
  // Runs all of them, side by side as far as the run's concurrency allows; outcomes in the order of
  // `runs`. Fails when one of them does, with its failure; the others are then stopped.
  virtual Result<std::vector<ToolOutcome>> RunTools(std::span<const ToolRun> runs) = 0;
  // The value of a template in `state`; where it leads nowhere, its text. Holds no credentials.
  virtual Result<json::Value> Fill(const std::string& text, const State& state) = 0;
  virtual void Stream(DeltaKind kind, json::Value data) = 0;
  // What a model has used. Fails with graph.budget when the run may not use so much; it is counted
  // all the same.
  virtual Result<void> CountTokens(std::int64_t input, std::int64_t output) = 0;
};

// What a configuration field accepts, and to what it is converted, as the peer's models do it: a
// number written in a string for a number, "yes" for a boolean, and so on.
enum class FieldKind : std::uint8_t {
  kAny,
  kString,
  kBool,
  kInt,
  kFloat,
  kList,
  kListOrString,
  kIntOrString,
  kStringList,
  kObject,
  kStringMap,  // an object whose values are strings
  kObjectList,
  kSteps,     // a list of objects that the engine keeps for Host::RunStep; null in Visit::fields
  kTools,     // a list of workflow tools that the engine keeps; null in Visit::fields
  kTemplate,  // a string whose templates stay in it, for Host::Fill
  kTemplateList,  // a list of them
  kChoice,        // one of `choices`
  kChoiceList,    // a list of them
};

struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kAny;
  bool required = false;
  bool nullable = false;
  std::string_view default_json = "null";  // JSON text
  std::span<const std::string_view> choices;
  // kInt, kFloat: the least value allowed.
  double minimum = -std::numeric_limits<double>::infinity();
  // Further checks of a converted value, which give its final form; nullptr when there are none.
  // Fails with nodes.config; the message begins with the path.
  Result<json::Value> (*check)(const json::Value& value, std::string_view path) = nullptr;
};

// One visit of a node. `fields` are the values of NodeType::fields, index by index, with their
// templates resolved: what a template yielded may have any type.
struct Visit {
  const std::string& name;
  std::span<const json::Value> fields;
  const State& state;
  Host& host;
};

// What a run must have for a node of a type.
enum class Need : std::uint8_t { kNothing, kNetwork, kBlobs, kItems };

struct NodeType {
  std::string_view name;
  std::span<const Field> fields;
  // The node's result, before its promotion into the state. Fails with nodes.failed (or a code that
  // Host gave).
  Result<json::Value> (*run)(const Visit& visit);
  // What no field can say alone, of values that are all valid; nullptr when there is nothing. Fails
  // with nodes.config.
  Result<void> (*check)(std::span<const json::Value> values) = nullptr;
  Need need = Need::kNothing;
  // The result is the update of the state, and the node has no entry in node_results.
  bool writes_state = false;
};

// Converts and checks the members of `config`: the result has a value for each of `fields`,
// defaults filled in; members that are no fields are ignored. `path` names `config` in messages.
// Fails with nodes.config and every fault, each with its JSON path.
Result<json::Array> ValidateFields(std::span<const Field> fields, const json::Object& config,
                                   std::string_view path = "$.config");
// The same of a node's configuration, NodeType::check included.
Result<json::Array> ValidateConfig(const NodeType& type, const json::Object& config,
                                   std::string_view path = "$.config");
// The fields of a visit converted and checked once more, as by ValidateFields: for nodes that look
// at what templates yielded as they look at their configuration. Fails with nodes.failed.
Result<json::Array> ValidateAgain(std::span<const Field> fields, const Visit& visit);

// The types that run on the host, sorted by name. An explicit list; nothing registers itself.
class Table {
 public:
  explicit Table(std::span<const NodeType* const> types) : types_(types) {}
  const NodeType* Find(std::string_view name) const;
  std::span<const NodeType* const> types() const { return types_; }

 private:
  std::span<const NodeType* const> types_;
};
const Table& BuiltinNodes();

}  // namespace caisson::nodes
