// SPDX-License-Identifier: Apache-2.0
// What the command line says about a node host, as plain data.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace caisson::cli {

struct NodeHostArguments {
  std::optional<std::string> python;  // a program; none: no node host
  std::vector<std::string> types;
  bool all_types = false;
  std::optional<std::string> egress;           // rules with commas between; none: no network
  std::chrono::milliseconds timeout{300'000};  // of one node
  bool serves_something() const { return all_types || !types.empty(); }
};
void AddNodeHost(CLI::App* command, NodeHostArguments& arguments);

}  // namespace caisson::cli
