// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson {
namespace {

TEST(Shortened, cuts_between_characters) {
  EXPECT_EQ(Shortened("größe", 100), "größe");
  EXPECT_EQ(Shortened("größe", 7), "größe");
  EXPECT_EQ(Shortened("größe", 6), "größ…");
  EXPECT_EQ(Shortened("größe", 3), "gr…");
  EXPECT_EQ(Shortened("größe", 0), "…");
  EXPECT_EQ(Shortened("", 0), "");
}

TEST(Shortened, gives_utf8_whatever_it_is_given) {
  EXPECT_EQ(Shortened("a\xff\x80z", 100), "a\ufffd\ufffdz");
  EXPECT_EQ(Shortened("\xf0\x9f\x98", 100), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(Shortened(std::string(10, '\xff'), 2), "\ufffd\ufffd…");
}

}  // namespace
}  // namespace caisson
