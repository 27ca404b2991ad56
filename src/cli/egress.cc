// SPDX-License-Identifier: Apache-2.0
// caisson egress explain: what a network policy does with one destination. Asks nobody.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "egress/explain.h"
#include "egress/policy.h"

namespace caisson::cli {
namespace {

std::vector<std::string> RulesIn(std::string_view text) {
  std::vector<std::string> rules;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    rules.emplace_back(text.substr(0, comma));
    if (comma + 1 == text.size()) rules.emplace_back();  // one that is missing
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return rules;
}

}  // namespace

ExitCode ExplainEgress(const EgressArguments& arguments, Console& console) {
  const auto policy = egress::Policy::Parse(RulesIn(arguments.rules), egress::HostNames::kEnforced);
  if (!policy) return console.Complain(policy.error());
  const auto destination = egress::ParseDestination(arguments.destination);
  if (!destination) return console.Complain(destination.error());
  return PrintJson(egress::Explain(*policy, *destination), console);
}

}  // namespace caisson::cli
