// SPDX-License-Identifier: Apache-2.0
#include "isolate/pace.h"

#include <gtest/gtest.h>

namespace caisson::isolate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Pace, PausesOnceMessagesHaveComeThickAndFast) {
  Pace pace;
  Pace::Clock::time_point now(std::chrono::hours(1));
  for (int i = 0; i < 32; ++i) {
    EXPECT_FALSE(pace.ShouldPause()) << i;
    pace.Heard(1, false, now += microseconds(20));
  }
  pace.Heard(1, false, now += microseconds(20));
  EXPECT_TRUE(pace.ShouldPause());
  // After a pause of its own making it hears several at once, or stops pausing.
  pace.Heard(40, false, now += milliseconds(2));
  EXPECT_TRUE(pace.ShouldPause());
  pace.Heard(400, true, now += milliseconds(2));
  EXPECT_FALSE(pace.ShouldPause());
  pace.Heard(40, false, now += milliseconds(2));
  EXPECT_TRUE(pace.ShouldPause());
  pace.Heard(1, false, now += milliseconds(2));
  EXPECT_FALSE(pace.ShouldPause());
}

TEST(Pace, NeverPausesForMessagesThatComeOneByOne) {
  Pace pace;
  Pace::Clock::time_point now(std::chrono::hours(1));
  for (int i = 0; i < 1000; ++i) {
    pace.Heard(1, false, now += milliseconds(1));
    EXPECT_FALSE(pace.ShouldPause()) << i;
  }
}

}  // namespace
}  // namespace caisson::isolate
