// SPDX-License-Identifier: Apache-2.0
// What runs node types that are not ours, as the engine sees it: which types it serves, whether it
// would take a configuration, and running one node. Knows nothing of graphs. Thread-safe.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "nodes/node.h"

namespace caisson::host {

struct ServedField {
  std::string name;
  bool required = false;
};
struct ServedType {
  std::string name;
  std::string category;
  bool restricted = false;  // refused for untrusted authors
  std::vector<ServedField> fields;
};

// A value that must not be shown, and what stands for it.
using Secret = std::pair<std::string, std::string>;

struct Call {
  std::string type;
  std::string node;      // its id
  std::string instance;  // calls that share it, type and config share the node; empty: its own
  json::Value config;    // an object as the author wrote it
  // For each text of `config`, and of the type's defaults, that holds a template or a credential:
  // what it yields. The host resolves nothing itself.
  json::Object values;
  json::Value state;       // an object of state fields
  json::Value run_config;  // an object
  std::vector<Secret> secrets;
};

// Who waits for a call. Its members are called from threads of the provider, too.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Fails once the call shall end; asked again and again.
  virtual Result<void> Check() = 0;
  virtual void Log(nodes::LogLevel level, std::string_view message) = 0;
};

struct Failure {
  Status status;
  std::string error_type;  // the class of the exception that the node raised
};

class Provider {
 public:
  virtual ~Provider() = default;
  // nullptr when it does not serve that type. Lives as long as the provider.
  virtual const ServedType* Find(std::string_view type) const = 0;
  // Whether a node could be made of that configuration. Fails with nodes.config, or host.* codes.
  virtual Result<void> Check(const std::string& type, const std::string& node,
                             const json::Value& config) = 0;
  // Blocks. Gives an object of the state fields that the node writes. Fails with nodes.failed,
  // nodes.config, host.*, or as the waiter's Check does.
  virtual std::expected<json::Value, Failure> Run(const Call& call, Waiter& waiter) = 0;
};

}  // namespace caisson::host
