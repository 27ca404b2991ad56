// SPDX-License-Identifier: Apache-2.0
// The items of an RSS or Atom document. It comes from anywhere: bounded in depth and size, and
// entities of its own are refused, so that nothing in it expands or is fetched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::nodes {

struct FeedItem {
  std::string title;
  std::string link;
  std::string description;
  std::string published;  // as it stands there
};

inline constexpr std::size_t kMostFeedDepth = 200;
inline constexpr std::size_t kMostFeedElements = 1'000'000;
inline constexpr std::size_t kMostFeedText = 64u << 20;

// `xml` is UTF-8, whatever its declaration says. Fails with nodes.failed.
Result<std::vector<FeedItem>> ReadFeed(std::string_view xml);

// A date of a feed in UTC, "2024-01-31T10:00:00+00:00"; empty when it is none.
std::string NormalFeedDate(std::string_view text);

}  // namespace caisson::nodes
