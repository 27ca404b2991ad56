// SPDX-License-Identifier: Apache-2.0
#include "egress/crowding.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

TEST(Crowding, BeginsAtThreeQuartersAndEndsBelowAHalf) {
  EXPECT_FALSE(IsCrowded(false, {.count = 0, .most = 1000}));
  EXPECT_FALSE(IsCrowded(false, {.count = 749, .most = 1000}));
  EXPECT_TRUE(IsCrowded(false, {.count = 750, .most = 1000}));
  EXPECT_TRUE(IsCrowded(true, {.count = 500, .most = 1000}));
  EXPECT_FALSE(IsCrowded(true, {.count = 499, .most = 1000}));
  EXPECT_FALSE(IsCrowded(true, {.count = 1000, .most = 0})) << "no limit";
}

}  // namespace
}  // namespace caisson::egress
