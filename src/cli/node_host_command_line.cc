// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/node_host_arguments.h"
#include "cli/quantity.h"

namespace caisson::cli {
namespace {

void TakeTypes(const std::string& text, NodeHostArguments& arguments) {
  arguments.types.clear();
  arguments.all_types = text == "all";
  if (arguments.all_types) return;
  for (std::string& type : CLI::detail::split(text, ',')) {
    CLI::detail::trim(type);
    if (type.empty()) {
      throw CLI::ValidationError("--node-host-types",
                                 "write the names of node types with commas between, or all");
    }
    arguments.types.push_back(std::move(type));
  }
}

void TakeTimeout(const std::string& text, NodeHostArguments& arguments) {
  const auto value = ParseDuration(text);
  if (!value) throw CLI::ValidationError("--node-host-timeout", value.error());
  arguments.timeout = *value;
}

}  // namespace

void AddNodeHost(CLI::App* command, NodeHostArguments& arguments) {
  command
      ->add_option("--node-host", arguments.python,
                   "The Python that has caisson-orcheo, for node types that are not native")
      ->envname("CAISSON_NODE_HOST")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--node-host-types",
          [&arguments](const std::string& text) { TakeTypes(text, arguments); },
          "The node types that it may serve, with commas between, or all; none unless it is given")
      ->envname("CAISSON_NODE_HOST_TYPES")
      ->type_name("TYPES");
  command
      ->add_option("--node-host-egress", arguments.egress,
                   "What its nodes may reach by HTTPS: host, host:port, *.host, addresses, with "
                   "commas between; or * for all that is public. Nothing unless it is given")
      ->envname("CAISSON_NODE_HOST_EGRESS")
      ->type_name("RULES");
  command
      ->add_option_function<std::string>(
          "--node-host-timeout",
          [&arguments](const std::string& text) { TakeTimeout(text, arguments); },
          "Time for one of its nodes (5m), from 1ms to 1000h")
      ->type_name("TIME");
}

}  // namespace caisson::cli
