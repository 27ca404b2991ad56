// SPDX-License-Identifier: Apache-2.0
#include "cli/service.h"

#include <unistd.h>

#include <cstdlib>

namespace caisson::cli {
namespace {

struct Dispatch {
  Console& console;
  ExitCode operator()(const ServeArguments& wish) { return ServeApi(wish, console); }
  ExitCode operator()(const KeysArguments& wish) { return Keys(wish, console); }
  ExitCode operator()(const TenantsArguments& wish) { return Tenants(wish, console); }
  ExitCode operator()(const ShapesArguments& wish) { return PrintShapes(wish, console); }
  ExitCode operator()(const SandboxArguments& wish) { return Sandbox(wish, console); }
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ExitCode Service(const ServiceArguments& arguments, Console& console) {
  return std::visit(Dispatch{console}, arguments);
}

std::string StateDirectory(const std::optional<std::string>& given) {
  if (given) return *given;
  if (geteuid() == 0) return "/var/lib/caisson";
  const std::string state = Variable("XDG_STATE_HOME");
  return (state.empty() ? Variable("HOME") + "/.local/state" : state) + "/caisson";
}

}  // namespace caisson::cli
