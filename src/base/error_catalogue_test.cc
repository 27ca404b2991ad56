// SPDX-License-Identifier: Apache-2.0
#include "base/error_catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "errors/json.h"

namespace caisson {
namespace {

TEST(ErrorCatalogue, HasEachCodeOnce) {
  std::set<std::string_view> seen;
  for (const ErrorEntry& entry : ErrorCatalogue()) {
    EXPECT_TRUE(seen.insert(entry.code).second) << entry.code;
    EXPECT_FALSE(entry.text.empty()) << entry.code;
  }
  EXPECT_FALSE(seen.empty());
}

TEST(ErrorCatalogue, FindsTheEntryOfACode) {
  EXPECT_EQ(FindError(errors::kJsonSyntax).code, "json.syntax");
  EXPECT_EQ(FindError(errors::kJsonSyntax).http_status, 400);
}

TEST(ErrorCatalogue, TreatsAnUnknownCodeAsInternal) {
  EXPECT_EQ(FindError(ErrorCode{"no.such"}).code, "internal.failed");
}

}  // namespace
}  // namespace caisson
