// SPDX-License-Identifier: Apache-2.0
#include "cli/node_host.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors/graph.h"
#include "graph/native_check.h"

namespace caisson::cli {
namespace {

// What an interpreter and its libraries need to start and to find their files. Everything else of
// our environment, keys of services above all, stays here.
bool IsPassed(std::string_view name) {
  static constexpr std::array kNames = {"PATH",
                                        "HOME",
                                        "LANG",
                                        "LANGUAGE",
                                        "TZ",
                                        "TMPDIR",
                                        "PYTHONPATH",
                                        "PYTHONHOME",
                                        "USER",
                                        "LOGNAME",
                                        "VIRTUAL_ENV",
                                        "XDG_CACHE_HOME",
                                        "XDG_CONFIG_HOME",
                                        "XDG_DATA_HOME"};
  if (name.starts_with("LC_")) return true;
  return std::ranges::any_of(kNames, [&](const char* known) { return name == known; });
}

// The package's own guards (of addresses, of tools that start programs) follow the mode.
std::vector<std::string> Environment() {
  std::vector<std::string> words = {"ORCHEO_WORKFLOW_DEFINITION_MODE=restricted",
                                    "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view word = *entry;
    if (IsPassed(word.substr(0, word.find('=')))) words.emplace_back(word);
  }
  return words;
}

Result<std::optional<host::WayOutOptions>> WayOutOf(const NodeHostArguments& arguments,
                                                    Console& console) {
  if (!arguments.egress) return std::nullopt;
  std::vector<std::string> rules;
  std::string_view rest = *arguments.egress;
  for (;;) {
    const std::size_t comma = rest.find(',');
    rules.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  host::WayOutOptions options;
  CAISSON_ASSIGN(options.policy, egress::Policy::Parse(rules, egress::HostNames::kEnforced));
  options.log = [&console](std::string_view text) {
    console.Warn("node host: " + std::string(text));
  };
  return options;
}

host::NodeHostOptions OptionsOf(const NodeHostArguments& arguments, Console& console) {
  host::NodeHostOptions options;
  host::ConnectionOptions& connection = options.connection;
  connection.process.command = {*arguments.python, "-m", "caisson_orcheo", "--max-message-bytes",
                                std::to_string(connection.max_frame_bytes)};
  connection.process.environment = Environment();
  connection.call_timeout = arguments.timeout;
  connection.log = [&console](nodes::LogLevel level, std::string_view text) {
    const std::string line = "node host: " + std::string(text);
    level == nodes::LogLevel::kInfo ? console.Info(line) : console.Warn(line);
  };
  options.types = arguments.types;
  options.all_types = arguments.all_types;
  return options;
}

}  // namespace

Result<std::unique_ptr<host::NodeHost>> OpenNodeHost(const NodeHostArguments& arguments,
                                                     const workflow::Graph& graph,
                                                     Console& console) {
  if (!arguments.python || arguments.python->empty()) return nullptr;
  const auto native = graph::RequireNative(graph, nodes::BuiltinNodes(), nullptr);
  if (native || native.error().code != errors::kGraphNotNative) return nullptr;
  if (!arguments.serves_something()) {
    console.Warn(
        "the node host is off: in restricted mode it serves only the node types that "
        "--node-host-types lists");
    return nullptr;
  }
  host::NodeHostOptions options = OptionsOf(arguments, console);
  CAISSON_ASSIGN(options.connection.way_out, WayOutOf(arguments, console));
  return host::NodeHost::Start(std::move(options));
}

}  // namespace caisson::cli
