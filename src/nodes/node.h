// SPDX-License-Identifier: Apache-2.0
// What a built-in node is: a row of a table with the fields of its configuration and a function
// that runs it. Nodes hold no state of their own, know nothing of graphs, and run on any thread;
// what they need from the engine (sleeping, logging, running another node) they ask of their Host.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "nodes/state.h"

namespace caisson::nodes {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

// The engine as a running node sees it. Every member may be called from the node's thread.
class Host {
 public:
  virtual ~Host() = default;
  // Returns after `duration`, or early with graph.cancelled or graph.timed_out.
  virtual Result<void> Sleep(std::chrono::nanoseconds duration) = 0;
  virtual void Log(LogLevel level, std::string_view message) = 0;
  // Runs one built-in node called `name` with the (raw) `config` on `state`, templates and
  // credentials included. Gives what the node stored in node_results under its own name.
  virtual Result<json::Value> RunStep(std::string_view type, const std::string& name,
                                      const json::Object& config, const State& state) = 0;
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
  kStringList,
  kObject,
  kObjectList,
  kChoice,      // one of `choices`
  kChoiceList,  // a list of them
};

struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kAny;
  bool required = false;
  bool nullable = false;
  std::string_view default_json = "null";  // JSON text
  std::span<const std::string_view> choices = {};
  // kInt, kFloat: the least value allowed.
  double minimum = -1e308;
  // Further checks of a converted value (and its normal form), nullptr when there are none.
  Result<json::Value> (*check)(json::Value value, std::string_view path) = nullptr;
};

// One visit of a node. `fields` are the values of NodeType::fields, index by index, with their
// templates resolved: what a template yielded may have any type.
struct Visit {
  const std::string& name;
  std::span<const json::Value> fields;
  const State& state;
  Host& host;
};

struct NodeType {
  std::string_view name;
  std::span<const Field> fields;
  // The node's result, before its promotion into the state. Fails with nodes.failed (or a code that
  // Host gave).
  Result<json::Value> (*run)(const Visit& visit);
};

// Converts and checks one configuration: the result has a value for each of type.fields, defaults
// filled in; members that are no fields are ignored. Fails with nodes.config, naming the JSON path
// below "$.config".
Result<json::Array> ValidateConfig(const NodeType& type, const json::Object& config);

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
