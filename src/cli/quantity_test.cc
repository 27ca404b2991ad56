// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <gtest/gtest.h>

namespace caisson::cli {
namespace {

using std::chrono::milliseconds;

TEST(Quantity, BytesTakeBinaryUnits) {
  EXPECT_EQ(ParseBytes("0"), 0u);
  EXPECT_EQ(ParseBytes("1024"), 1024u);
  EXPECT_EQ(ParseBytes("64MiB"), 64u << 20);
  EXPECT_EQ(ParseBytes("8M"), 8u << 20);
  EXPECT_EQ(ParseBytes("2GiB"), std::uint64_t{2} << 30);
}

TEST(Quantity, DurationsTakeUnitsAndFractions) {
  EXPECT_EQ(ParseDuration("30"), milliseconds(30'000));
  EXPECT_EQ(ParseDuration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("2m"), milliseconds(120'000));
}

TEST(Quantity, CountsTakeDecimalUnits) {
  EXPECT_EQ(ParseCount("600M"), 600'000'000u);
  EXPECT_EQ(ParseCount("0"), 0u);
}

TEST(Quantity, RefusesWhatIsNoQuantity) {
  for (const char* text : {"", "MiB", "-1", "1 MiB", "1.5MiB", "1TiB", "99999999999999999999",
                           "9999999999GiB", "0x10"}) {
    EXPECT_FALSE(ParseBytes(text)) << text;
  }
  for (const char* text : {"", "s", "-1s", "0", "0.2ms", "nan", "inf", "1e300h", "5 s", "5min"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
}

}  // namespace
}  // namespace caisson::cli
