// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/executor.h"

#include <gtest/gtest.h>

#include <string>

#include "isolate/micropython/test_runtime.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

TEST(MicroPython, RunsABodyOnItsStateConfigAndFields) {
  const Outcome outcome = Call(
      "def run(self, state, config):\n"
      "    return {'sum': state['a'] + config['b'] + self.c, 'list': [1, 2.5, None, True]}\n",
      R"({"self":{"c":3},"state":{"a":1},"config":{"b":2}})");
  EXPECT_EQ(Show(outcome), R"({"list":[1,2.5,null,true],"sum":6})");
}

}  // namespace
}  // namespace caisson::isolate
