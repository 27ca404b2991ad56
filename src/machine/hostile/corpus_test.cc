// SPDX-License-Identifier: Apache-2.0
#include "machine/hostile/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace caisson::machine::hostile {
namespace {

TEST(Corpus, HasEveryAttackWithAnOracleThatIsKnown) {
  constexpr std::array<std::string_view, 4> kOracles = {"no-escape", "limit", "no-forge",
                                                        "host-alive"};
  EXPECT_GE(Corpus().size(), 41U);
  for (const Attack& attack : Corpus()) {
    EXPECT_TRUE(attack.source.starts_with("# class: ")) << attack.name;
    EXPECT_NE(std::ranges::find(kOracles, attack.oracle()), kOracles.end())
        << attack.name << " " << attack.oracle();
  }
}

}  // namespace
}  // namespace caisson::machine::hostile
