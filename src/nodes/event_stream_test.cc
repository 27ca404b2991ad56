// SPDX-License-Identifier: Apache-2.0
#include "nodes/event_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "errors/model.h"

namespace caisson::nodes {
namespace {

std::vector<std::string> Events(std::string_view text, std::size_t piece) {
  EventStream stream(1000);
  std::vector<std::string> events;
  for (std::size_t begin = 0; begin < text.size(); begin += piece) {
    const auto fed = stream.Feed(text.substr(begin, piece), [&](std::string_view data) {
      events.emplace_back(data);
      return Result<void>();
    });
    EXPECT_TRUE(fed.has_value());
  }
  return events;
}

TEST(EventStream, is_the_same_wherever_it_is_cut) {
  const std::string text =
      ": a comment\r\n\r\ndata: one\n\ndata:two\r\ndata:  three\r\n\r\nevent: x\ndata\n\n"
      "database: no\nid: 7\n\ndata: last\r\rdata: without an end\n";
  const std::vector<std::string> expected{"one", "two\n three", "", "last"};
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(Events(text, piece), expected) << piece;
  }
}

TEST(EventStream, refuses_an_event_without_an_end) {
  EventStream stream(100);
  const auto take = [](std::string_view) { return Result<void>(); };
  ASSERT_TRUE(stream.Feed("data: " + std::string(60, 'a') + "\n", take).has_value());
  const auto fed = stream.Feed("data: " + std::string(60, 'a') + "\n", take);
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().code, errors::kModelTooLarge);
}

TEST(EventStream, hands_on_the_failure_of_who_takes_its_events) {
  EventStream stream(100);
  const auto fed = stream.Feed("data: a\n\ndata: b\n\n", [](std::string_view) -> Result<void> {
    return Fail(errors::kModelFailed, "no more");
  });
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().code, errors::kModelFailed);
}

}  // namespace
}  // namespace caisson::nodes
