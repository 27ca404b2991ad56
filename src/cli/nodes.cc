// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/commands.h"
#include "nodes/node.h"
#include "workflow/registry.h"

namespace caisson::cli {
namespace {

struct Provision {
  std::string_view provider;
  std::string_view needs;  // of the run; empty: nothing
};

std::string_view NeedName(nodes::Need need) {
  switch (need) {
    case nodes::Need::kNetwork:
      return "network";
    case nodes::Need::kBlobs:
      return "files";
    case nodes::Need::kItems:
      return "items";
    case nodes::Need::kNothing:
      break;
  }
  return "";
}

Provision ProvisionOf(const workflow::NodeType& type) {
  if (type.restricted) return {"restricted", ""};
  const nodes::NodeType* native = nodes::BuiltinNodes().Find(type.name);
  return native != nullptr ? Provision{"native", NeedName(native->need)} : Provision{"missing", ""};
}

ExitCode PrintTable(Console& console) {
  std::string text;
  for (const workflow::NodeType& type : workflow::NodeTypes()) {
    const Provision provision = ProvisionOf(type);
    text += fmt::format("{:<10} {:<8} {:<34} {}\n", provision.provider, provision.needs, type.name,
                        type.description);
  }
  return PrintText(text, console);
}

}  // namespace

ExitCode ListNodes(const NodesArguments& arguments, Console& console) {
  if (!arguments.json) return PrintTable(console);
  json::Array list;
  for (const workflow::NodeType& type : workflow::NodeTypes()) {
    const Provision provision = ProvisionOf(type);
    list.push_back(json::Object{{"type", type.name},
                                {"category", type.category},
                                {"description", type.description},
                                {"provider", provision.provider},
                                {"needs", provision.needs}});
  }
  return PrintJson(json::Object{{"nodes", std::move(list)}}, console);
}

}  // namespace caisson::cli
