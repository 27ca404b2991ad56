// SPDX-License-Identifier: Apache-2.0
#include "cli/prepared_vm.h"

#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

TEST(PreparedVm, IsAnImageProcessorsAndMemory) {
  const auto vm = ParsePreparedVm("devbox:1,2,1GiB");
  ASSERT_TRUE(vm) << vm.error();
  EXPECT_EQ(vm->image, "devbox:1");
  EXPECT_EQ(vm->cpus, 2);
  EXPECT_EQ(vm->memory_bytes, 1ull << 30);
  EXPECT_EQ(ParsePreparedVm("a,b,0.5,64MiB")->image, "a,b");
}

TEST(PreparedVm, ThatIsNoneIsRefused) {
  for (const char* text :
       {"", ",", ",,", "devbox:1", "devbox:1,2", ",1,1GiB", "devbox:1,,1GiB", "devbox:1,0,1GiB",
        "devbox:1,nan,1GiB", "devbox:1,1x,1GiB", "devbox:1,1,1", "devbox:1,1,much"}) {
    EXPECT_FALSE(ParsePreparedVm(text)) << text;
  }
}

}  // namespace
}  // namespace caisson::cli
