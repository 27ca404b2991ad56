// SPDX-License-Identifier: Apache-2.0
// Every attack of tests/corpora/attacks as a program of a machine of a driver, whose test program
// names a World and says INSTANTIATE_TEST_SUITE_P(Jail, MachineAttack, AttacksIn(...)).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/hostile/trial.h"
#include "machine/test_world.h"

namespace caisson::machine {

class MachineAttack : public testing::TestWithParam<std::tuple<MakeWorld, std::string>> {};

TEST_P(MachineAttack, IsContained) {
  const std::unique_ptr<World> world = std::get<0>(GetParam())();
  if (const std::string why = world->WhyNot(); !why.empty()) GTEST_SKIP() << why;
  auto trial = hostile::Trial::Open(world->driver(), {.image = world->image()});
  ASSERT_TRUE(trial) << trial.error().message;
  for (const hostile::Attack& attack : hostile::Corpus()) {
    if (attack.name != std::get<1>(GetParam())) continue;
    const hostile::Verdict verdict = (*trial)->Try(attack);
    for (const std::string& broken : verdict.broken) ADD_FAILURE() << broken;
  }
}

inline auto AttacksIn(MakeWorld world) {
  std::vector<std::string> names;
  for (const hostile::Attack& attack : hostile::Corpus()) names.emplace_back(attack.name);
  return testing::Combine(testing::Values(std::move(world)), testing::ValuesIn(names));
}
inline std::string NameOfAttack(const testing::TestParamInfo<MachineAttack::ParamType>& attack) {
  return std::get<1>(attack.param);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MachineAttack);

}  // namespace caisson::machine
