// SPDX-License-Identifier: Apache-2.0
// caisson sandbox egress, networks, join, leave
#include "cli/commands.h"
#include "cli/sandbox.h"

namespace caisson::cli {

Result<ExitCode> SandboxEgress(const SandboxArguments& arguments, ServiceClient& client,
                               Console& console) {
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.front()));
  if (arguments.log) {
    CAISSON_ASSIGN(auto log, client.Call("GET", path + "/egress/log"));
    return PrintJson(std::move(log), console);
  }
  if (arguments.egress.empty()) {
    CAISSON_ASSIGN(auto policy, client.Call("GET", path + "/egress"));
    return PrintJson(std::move(policy), console);
  }
  const json::Object body{
      {"egress", json::Array(arguments.egress.begin(), arguments.egress.end())}};
  CAISSON_ASSIGN(auto policy, client.Call("PUT", path + "/egress", body));
  return PrintJson(std::move(policy), console);
}

Result<ExitCode> SandboxNetworks(const SandboxArguments& arguments, ServiceClient& client,
                                 Console& console) {
  const std::string path = "/v1/networks";
  if (arguments.network_to_make) {
    CAISSON_ASSIGN(auto made,
                   client.Call("POST", path, json::Object{{"name", *arguments.network_to_make}}));
    return PrintJson(std::move(made), console);
  }
  if (arguments.network_to_remove) {
    CAISSON_ASSIGN(
        auto removed,
        client.Call("DELETE", path + "/" + http::PercentEncode(*arguments.network_to_remove)));
    return PrintJson(std::move(removed), console);
  }
  CAISSON_ASSIGN(auto all, client.Call("GET", path + "?limit=500"));
  return PrintJson(std::move(all), console);
}

Result<ExitCode> SandboxJoin(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.front()));
  const std::string& network = arguments.network;
  if (arguments.action == SandboxArguments::Action::kLeave) {
    CAISSON_ASSIGN(auto left,
                   client.Call("DELETE", path + "/networks/" + http::PercentEncode(network)));
    return PrintJson(std::move(left), console);
  }
  CAISSON_ASSIGN(auto joined,
                 client.Call("POST", path + "/networks", json::Object{{"id", network}}));
  return PrintJson(std::move(joined), console);
}

}  // namespace caisson::cli
