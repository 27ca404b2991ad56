// SPDX-License-Identifier: Apache-2.0
#include "json/truth.h"

#include <gtest/gtest.h>

#include "json/reader.h"

namespace caisson::json {
namespace {

TEST(Truth, IsThatOfPython) {
  for (const char* text :
       {"null", "false", "0", "-0", "0.0", "-0.0", "1e-999", "\"\"", "[]", "{}"}) {
    EXPECT_FALSE(Truth(*Read(text))) << text;
  }
  for (const char* text : {"true", "1", "-1", "5e-324", "18446744073709551616", "\" \"", "\"0\"",
                           "[0]", "{\"\":null}"}) {
    EXPECT_TRUE(Truth(*Read(text))) << text;
  }
}

}  // namespace
}  // namespace caisson::json
