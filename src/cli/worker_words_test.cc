// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace caisson::cli {
namespace {

TEST(WorkerWords, ArriveAsTheyWereSent) {
  setenv("CAISSON_CACHE_DIR", "/var/cache/with=sign and space", 1);
  isolate::Limits limits;
  limits.memory_bytes = 123;
  limits.heap_bytes = 456;
  auto setup = ParseWorkerWords(WorkerWords(limits));
  ASSERT_TRUE(setup);
  EXPECT_EQ(setup->limits.memory_bytes, 123u);
  EXPECT_EQ(setup->limits.heap_bytes, 456u);
  const std::pair<std::string, std::string> expected("CAISSON_CACHE_DIR",
                                                     "/var/cache/with=sign and space");
  EXPECT_NE(std::ranges::find(setup->variables, expected), setup->variables.end());
}

TEST(WorkerWords, OtherVariablesAndWordsAreRefused) {
  EXPECT_FALSE(ParseWorkerWords({"env:LD_PRELOAD=/x.so"}));
  EXPECT_FALSE(ParseWorkerWords({"memory=12x"}));
  EXPECT_FALSE(ParseWorkerWords({"memory"}));
  EXPECT_FALSE(ParseWorkerWords({"fuel=1"}));
}

}  // namespace
}  // namespace caisson::cli
