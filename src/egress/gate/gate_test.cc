// SPDX-License-Identifier: Apache-2.0
// What the helper tells the gate.
#include "egress/gate/gate.h"

#include <gtest/gtest.h>

#include "egress/gate/test_gate.h"

namespace caisson::egress::gate {
namespace {

TEST(Gate, takes_all_that_the_helper_says_at_once) {
  TestGate gate({.resolvers = {}});
  std::string name;
  while (name.size() < 240) name += "abcdefghi.";
  std::vector<NameRule> rules;
  for (std::size_t i = 0; i < kMaxRules; ++i) rules.push_back(RuleFor(name + "test", 443, i));
  // More than a channel takes at once.
  for (int round = 0; round < 3; ++round) {
    std::vector<GateMachine> machines;
    for (std::uint32_t i = 0; i < 7; ++i) {
      machines.push_back({.address = kMachine + i,
                          .generation = static_cast<std::uint64_t>(round) + 1,
                          .rules = rules});
    }
    gate.SetMachines(machines);
  }
}

}  // namespace
}  // namespace caisson::egress::gate
